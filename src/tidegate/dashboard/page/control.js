// The controls: each asks the server with the token that the person has typed.

import { byId, el, percent, put } from "./dom.js";

const TOKEN = "tidegate-token";
const POLICIES = ["fixed", "threshold", "model", "auto"];
// What is typed is text; these fields are asked for as something else.
const READ = { instances: Number, instance: Number, share: (text) => `${text} percent` };

export class Control {
  constructor(source) {
    this.source = source;
    this.shape = "";
  }

  // Builds the forms anew only where what they offer has changed: what was typed stays.
  draw(query, picture) {
    const reason = this.reason(query, picture);
    const names = Object.keys(picture?.subqueries ?? {});
    const shedding = Object.entries(picture?.shedding ?? {});
    const shape = JSON.stringify([query?.id, reason, names, shedding.map(([name, one]) => [name, one.most])]);
    if (shape !== this.shape) this.build(query, reason, names, shedding);
    this.shape = shape;
    if (this.shed) this.shed.textContent = shedding.map((one) => sheds(one, shedding.length > 1)).join("; ");
  }

  build(query, reason, names, shedding) {
    this.query = query;
    this.shed = null;
    this.off = Boolean(reason);
    if (this.source.still) return put(byId("control-body"), el("p", { class: "note" }, reason));
    byId("control-body").replaceChildren(el("p", { class: "note" }, reason || "The token is printed where the query was started. It stays in this tab."),
      this.tokenField(), el("div", { class: "controls" }, ...this.forms(names, shedding)), this.said = el("p", { id: "said", role: "status" }));
  }

  reason(query, picture) {
    if (this.source.still) return "This is a report: there is nothing to control here.";
    const state = picture?.state ?? "";
    if (!["running", "paused"].includes(state)) return "The query has ended: there is nothing to control.";
    return query?.control ? "" : "This server cannot reach the process that runs the query.";
  }

  tokenField() {
    const field = el("input", { type: "password", autocomplete: "off", size: "32", disabled: this.off, oninput: () => sessionStorage.setItem(TOKEN, field.value) });
    field.value = sessionStorage.getItem(TOKEN) ?? "";
    this.token = field;
    return el("form", { onsubmit: (event) => event.preventDefault() }, el("label", {}, "Token", field));
  }

  forms(names, shedding) {
    const set = (title, ...fields) => el("fieldset", { disabled: this.off }, el("legend", {}, title), ...fields);
    const whole = (label, name, value) => el("label", {}, label, el("input", { type: "number", min: name === "instances" ? "1" : "0", value, name, required: true, size: "5" }));
    const of = () => (names.length > 1 ? el("label", {}, "of", el("select", { name: "subquery" }, el("option", { value: "" }, "all"), ...names.map((name) => el("option", { value: name }, name)))) : null);
    const why = () => el("label", {}, "why", el("input", { name: "why", maxlength: "500", size: "14" }));
    const submit = (text) => el("button", { type: "submit" }, text);
    const asks = (command, fields) => el("form", { onsubmit: (event) => this.ask(event, command) }, fields);
    const form = (title, command, button, ...fields) => asks(command, set(title, ...fields, submit(button)));
    return [
      form("Instances", "scale", "Scale", whole("to", "instances", "2"), of(), why()),
      form("Even loads", "rebalance", "Rebalance", of(), why()),
      form("Buckets", "move", "Move", el("label", {}, "buckets", el("input", { name: "buckets", placeholder: "3,4,10-12", required: true, size: "10" })), whole("to instance", "instance", "0"), of(), why()),
      form("Who decides about instances", "policy", "Set policy", el("label", {}, "policy", el("input", { name: "policy", list: "policies", placeholder: "threshold?maximum=8", required: true, size: "24" })),
        el("datalist", { id: "policies" }, ...POLICIES.map((name) => el("option", { value: name })))),
      shedding.length ? asks("shed", set("Shedding", ...this.shedFields(shedding, why(), submit("Shed")))) : null,
      el("div", {}, set("The run", ...[["pause", "Pause"], ["resume", "Resume"], ["stop", "Stop"]].map(([command, text]) =>
        el("button", { type: "button", onclick: (event) => this.ask(event, command) }, text)))),
    ];
  }

  // `auto` is for queries whose share is the engine's to choose, up to a limit.
  shedFields(shedding, why, submit) {
    const most = Math.max(...shedding.map(([, one]) => one.most ?? 0));
    const button = (text, share) => el("button", { type: "button", onclick: (event) => this.ask(event, "shed", { share }) }, text);
    return [
      this.shed = el("p", { class: "note", id: "shed-now" }),
      el("label", {}, "percent", el("input", { type: "number", min: "0", max: most ? String(Number((100 * most).toFixed(6))) : "99.999", step: "any", value: "50", name: "share", required: true, size: "5" })),
      why, submit, button("Shed nothing", "off"), most ? button("Leave it to the backlog", "auto") : null,
    ];
  }

  async ask(event, command, given = {}) {
    event.preventDefault();
    const form = event.target instanceof HTMLFormElement ? event.target : event.target.form;
    const typed = form ? [...new FormData(form)].filter(([, value]) => value !== "").map(([name, value]) => [name, (READ[name] ?? String)(value)]) : [];
    const body = { query: this.query.id, command, ...Object.fromEntries(typed), ...given };
    if (command === "stop" && !confirm("Stop the query after the batch at hand?")) return;
    this.said.className = "";
    this.said.textContent = `${command}: asked`;
    const { ok, text } = await this.source.control(body, this.token.value.trim());
    this.said.className = ok ? "" : "bad";
    this.said.textContent = `${command}: ${text}`;
  }
}

function sheds([name, one], named) {
  const most = one.most === null ? "" : `, at most ${percent(one.most)}`;
  return `${named ? `${name}: ` : ""}${one.share ? `${percent(one.share)} is shed` : "nothing is shed"}, as ${one.by} says${most}`;
}
