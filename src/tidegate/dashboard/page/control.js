// The controls: each asks the server with the token that the person has typed.

import { byId, el, put } from "./dom.js";

const TOKEN = "tidegate-token";
const POLICIES = ["fixed", "threshold", "model"];

export class Control {
  constructor(source) {
    this.source = source;
    this.shape = "";
  }

  // Builds the forms anew only where what they offer has changed: what was typed stays.
  draw(query, picture) {
    const reason = this.reason(query, picture);
    const names = Object.keys(picture?.subqueries ?? {});
    const shape = JSON.stringify([query?.id, reason, names]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.query = query;
    this.off = Boolean(reason);
    if (this.source.still) return put(byId("control-body"), el("p", { class: "note" }, reason));
    byId("control-body").replaceChildren(el("p", { class: "note" }, reason || "The token is printed where the query was started. It stays in this tab."),
      this.tokenField(), el("div", { class: "controls" }, ...this.forms(names)), this.said = el("p", { id: "said", role: "status" }));
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

  forms(names) {
    const set = (title, ...fields) => el("fieldset", { disabled: this.off }, el("legend", {}, title), ...fields);
    const whole = (label, name, value) => el("label", {}, label, el("input", { type: "number", min: name === "instances" ? "1" : "0", value, name, required: true, size: "5" }));
    const of = () => (names.length > 1 ? el("label", {}, "of", el("select", { name: "subquery" }, el("option", { value: "" }, "all"), ...names.map((name) => el("option", { value: name }, name)))) : null);
    const why = () => el("label", {}, "why", el("input", { name: "why", maxlength: "500", size: "14" }));
    const form = (title, command, button, ...fields) => el("form", { onsubmit: (event) => this.ask(event, command) }, set(title, ...fields, el("button", { type: "submit" }, button)));
    return [
      form("Instances", "scale", "Scale", whole("to", "instances", "2"), of(), why()),
      form("Even loads", "rebalance", "Rebalance", of(), why()),
      form("Buckets", "move", "Move", el("label", {}, "buckets", el("input", { name: "buckets", placeholder: "3,4,10-12", required: true, size: "10" })), whole("to instance", "instance", "0"), of(), why()),
      form("Who decides about instances", "policy", "Set policy", el("label", {}, "policy", el("select", { name: "policy" }, ...POLICIES.map((name) => el("option", {}, name))))),
      el("div", {}, set("The run", ...[["pause", "Pause"], ["resume", "Resume"], ["stop", "Stop"]].map(([command, text]) =>
        el("button", { type: "button", onclick: (event) => this.ask(event, command) }, text)))),
    ];
  }

  async ask(event, command) {
    event.preventDefault();
    const body = { query: this.query.id, command };
    if (event.target instanceof HTMLFormElement)
      for (const [name, value] of new FormData(event.target)) if (value !== "") body[name] = ["instances", "instance"].includes(name) ? Number(value) : value;
    if (command === "stop" && !confirm("Stop the query after the batch at hand?")) return;
    this.said.className = "";
    this.said.textContent = `${command}: asked`;
    const { ok, text } = await this.source.control(body, this.token.value.trim());
    this.said.className = ok ? "" : "bad";
    this.said.textContent = `${command}: ${text}`;
  }
}
