// The plan as a graph from left to right, coloured by load; an operator shows its figures.

import { byId, bytes, colour, count, el, known, ms, painted, percent, put, svg, table } from "./dom.js";
import { bucketNumbers } from "./buckets.js";
import { levelsOf, phaseOf } from "./phases.js";

const LAST = 50;
const WIDE = 172;
const HIGH = 58;
const ACROSS = 92;
const DOWN = 22;

const fit = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export class PlanGraph {
  constructor() {
    this.chosen = null;
  }

  reset() {
    this.chosen = null;
  }

  draw(history, picture) {
    this.history = history;
    this.picture = picture;
    const plan = picture?.plan;
    if (!plan?.nodes?.length) {
      put(byId("plan-details"));
      return put(byId("plan-picture"), el("p", { class: "note" }, "The plan is not known here."));
    }
    this.figures = this.measure();
    this.chosen ??= plan.nodes.find((node) => node.kind === "subquery")?.id;
    const focused = document.activeElement?.dataset?.node;
    put(byId("plan-picture"), this.graph(plan));
    if (focused) [...document.querySelectorAll("[data-node]")].find((one) => one.dataset.node === focused)?.focus();
    this.details();
  }

  // Rows in and out a second of each subquery, over the newest batches.
  measure() {
    const records = this.history.newest.slice(-LAST);
    const found = new Map();
    if (!records.length) return found;
    const seconds = Math.max(records.at(-1).at + records.at(-1).ms / 1e3 - records[0].at, 1e-3);
    for (const record of records)
      for (const task of record.tasks) {
        const one = found.get(task.subquery) ?? { rowsIn: 0, rowsOut: 0, steps: new Map(), seconds, batches: records.length };
        one.rowsIn += task.tuples;
        one.rowsOut += task.outputs;
        for (const [step, took] of Object.entries(task.spans_ms)) if (!step.startsWith("spark ")) one.steps.set(phaseOf(step), (one.steps.get(phaseOf(step)) ?? 0) + took);
        found.set(task.subquery, one);
      }
    return found;
  }

  load(name) {
    const shares = this.picture.load?.[name]?.utilisation ?? [];
    return shares.length ? Math.max(...shares) : NaN;
  }

  rate(edge, nodes) {
    const from = nodes.get(edge.from);
    if (from.kind === "subquery") {
      const one = this.figures.get(from.name);
      return one ? `${count(one.rowsOut / one.seconds)} rows/s` : "";
    }
    const streams = this.picture.plan.nodes.filter((node) => node.kind === "stream").length;
    const length = this.history.length;
    return streams === 1 && length ? `${count(this.history.rate("rows_in", length - LAST, length))} rows/s` : "";
  }

  graph(plan) {
    const levels = levelsOf(plan);
    const last = Math.max(...levels.values());
    const columns = new Map();
    for (const node of plan.nodes) {
      const level = node.kind === "output" ? last : levels.get(node.id);
      columns.set(level, [...(columns.get(level) ?? []), node]);
    }
    const most = Math.max(...[...columns.values()].map((nodes) => nodes.length));
    const high = most * (HIGH + DOWN) + 8;
    const places = new Map();
    for (const [level, nodes] of columns)
      nodes.forEach((node, i) => places.set(node.id, { x: 4 + level * (WIDE + ACROSS), y: (high - nodes.length * (HIGH + DOWN) + DOWN) / 2 + i * (HIGH + DOWN) }));
    const nodes = new Map(plan.nodes.map((node) => [node.id, node]));
    const wide = 8 + last * (WIDE + ACROSS) + WIDE;
    return svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": "Plan of the query" },
      ...plan.edges.map((edge) => this.edge(edge, places, nodes)), ...plan.nodes.map((node) => this.node(node, places.get(node.id))));
  }

  edge(edge, places, nodes) {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (!from || !to) return null;
    const [x0, y0, x1, y1] = [from.x + WIDE, from.y + HIGH / 2, to.x, to.y + HIGH / 2];
    const middle = (x0 + x1) / 2;
    return svg("g", {},
      svg("path", { class: "edge", d: `M${x0} ${y0} C${middle} ${y0} ${middle} ${y1} ${x1 - 6} ${y1}` }),
      svg("path", { class: "edge", d: `M${x1 - 7} ${y1 - 4} L${x1 - 1} ${y1} L${x1 - 7} ${y1 + 4}` }),
      svg("text", { class: "soft", x: middle, y: (y0 + y1) / 2 - 7, "text-anchor": "middle" }, this.rate(edge, nodes)),
      edge.filtered ? svg("text", { class: "soft", x: middle, y: (y0 + y1) / 2 + 14, "text-anchor": "middle" }, "filtered") : null);
  }

  node(node, { x, y }) {
    const operator = node.kind === "subquery";
    const load = operator ? this.load(node.name) : NaN;
    const of = this.picture.subqueries?.[node.name];
    const choose = () => {
      this.chosen = node.id;
      this.draw(this.history, this.picture);
    };
    const more = operator
      ? { tabindex: "0", role: "button", "aria-pressed": String(node.id === this.chosen), "data-node": node.id, onclick: choose,
        onkeydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), choose()) }
      : {};
    const second = operator ? `${of ? `${of.instances} ${of.instances === 1 ? "instance" : "instances"}` : ""}${known(load) ? `, ${Math.round(load * 100)}% busy` : ""}` : node.kind;
    const box = svg("rect", { width: WIDE, height: HIGH, rx: operator ? 6 : 26 });
    box.style.fill = known(load) ? `rgba(${colour("load")}, ${(0.06 + 0.5 * Math.min(load, 1)).toFixed(2)})` : "transparent";
    return svg("g", { class: `node ${operator ? "operator" : ""} ${node.id === this.chosen ? "chosen" : ""}`, transform: `translate(${x},${y})`, ...more },
      svg("title", {}, node.operator ?? `${node.kind} ${node.name}`), box,
      svg("text", { x: WIDE / 2, y: operator ? 18 : 26, "text-anchor": "middle", "font-weight": "600" }, fit(node.name, 22)),
      operator ? svg("text", { class: "soft", x: WIDE / 2, y: 33, "text-anchor": "middle" }, fit(node.operator ?? "", 26)) : null,
      svg("text", { class: operator ? "" : "soft", x: WIDE / 2, y: operator ? 49 : 42, "text-anchor": "middle" }, second));
  }

  details() {
    const node = this.picture.plan.nodes.find((one) => one.id === this.chosen);
    if (!node) return put(byId("plan-details"));
    const { load, subqueries, per_instance, window_lines, buckets } = this.picture;
    const one = this.figures.get(node.name);
    const shares = load?.[node.name]?.utilisation ?? [];
    const totals = (per_instance ?? []).filter((of) => of.subquery === node.name);
    const newest = (this.history.newest.at(-1)?.tasks ?? []).filter((task) => task.subquery === node.name);
    const rows = Array.from({ length: subqueries?.[node.name]?.instances ?? shares.length }, (_, i) => {
      const meter = el("span", { class: "meter" }, painted(el("i"), "width", `${Math.min((shares[i] ?? 0) * 100, 100)}%`));
      return [String(i), el("span", {}, meter, known(shares[i]) ? `${Math.round(shares[i] * 100)}%` : "–"), count(newest.find((task) => task.instance === i)?.tuples),
        count(totals.find((of) => of.instance === i)?.outputs), ms((totals.find((of) => of.instance === i)?.cpu_us ?? NaN) / 1e3), count(bucketNumbers(buckets?.[node.name]?.[i] ?? "").length)];
    });
    const steps = one ? [...one.steps].sort((a, b) => b[1] - a[1]).map(([phase, took]) => `${phase} ${ms(took / one.batches)}`).join(", ") : "";
    const lines = [
      node.operator,
      one ? `${count(one.rowsIn / one.seconds)} rows in and ${count(one.rowsOut / one.seconds)} out a second. Work a batch, all instances together: ${steps}.` : null,
      `Epoch ${subqueries?.[node.name]?.epoch ?? 0}; imbalance ${known(load?.[node.name]?.imbalance) ? percent(load[node.name].imbalance) : "not known"}.`,
      `State of the whole query: ${count(this.picture.state_rows)} rows, ${bytes(this.picture.state_bytes)}; at most ${count(this.picture.state_rows_max)} rows, ${bytes(this.picture.state_bytes_max)}.`,
      ...(window_lines ?? []).filter((line) => line.startsWith(`${node.name},`)),
    ];
    put(byId("plan-details"), el("div", {}, el("h3", {}, node.name), ...lines.filter(Boolean).map((line) => el("p", { class: "note" }, line))),
      rows.length ? table(`Instances of ${node.name}`, [["instance", "number"], ["busy"], ["rows, newest batch", "number"], ["rows out, run", "number"], ["CPU, run", "number"], ["buckets", "number"]], rows) : null);
  }
}
