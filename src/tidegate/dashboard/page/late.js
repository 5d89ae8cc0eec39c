// Rows that came late and rows that could not be read: how many, when, which, and what would help.

import { byId, clock, colour, count, el, known, percent, put, table } from "./dom.js";

const UNITS_US = [["DAY", 86400e6], ["HOUR", 3600e6], ["MINUTE", 60e6], ["SECOND", 1e6], ["MILLISECOND", 1e3]];

// A DISORDER that is enough, in a unit that a person would choose.
export function disorderText(needed) {
  const [unit, size] = UNITS_US.find(([, size]) => needed >= 2 * size) ?? UNITS_US.at(-1);
  const n = Math.ceil(needed / size);
  return `DISORDER ${n} ${unit}${n === 1 ? "" : "S"}`;
}

function samples(picture) {
  return Object.entries(picture.newest_rows ?? {}).filter(([name]) => !name.startsWith("output "))
    .map(([name, { columns, rows }]) => table(name === "rejected" ? "Newest rejected rows" : `Newest late rows of ${name.slice(5)}`,
      columns.map((column) => [column, "cell"]), rows.slice(-8).reverse()));
}

export class Late {
  constructor() {
    this.chart = el("div");
    this.text = el("div");
    byId("late-body").append(this.text, this.chart);
    this.samples = el("div");
    byId("late-body").append(this.samples);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.forget());
  }

  forget() {
    this.plot?.destroy();
    this.plot = null;
  }

  draw(history, picture) {
    if (!picture) return;
    const late = Object.entries(picture.late ?? {});
    const rows = late.map(([stream, one]) => [stream, count(one.rows), one.source ?? "", known(one.disorder_us) ? disorderText(one.disorder_us) : "–"]);
    const all = `${count(picture.rows_late)} of ${count(picture.rows_in)} rows came late (${percent(picture.rows_late / Math.max(picture.rows_in, 1))}), ${count(picture.rows_rejected)} were rejected.`;
    put(this.text, el("p", { class: "note" }, all), ...(picture.advice ?? []).map((line) => el("p", {}, line)),
      rows.length ? table("What would have taken all of them in", [["stream"], ["late rows", "number"], ["the latest in", "cell"], ["write after its TIME"]], rows) : null);
    put(this.samples, ...samples(picture));
    const any = picture.rows_late || picture.rows_rejected;
    this.chart.hidden = !any || history.length < 2;
    if (this.chart.hidden) return;
    const starts = history.bins(300);
    const data = [starts.map((i) => history.columns.at[i]), history.binnedSum("rows_late", starts), history.binnedSum("rows_rejected", starts)];
    const width = Math.max(this.chart.clientWidth, 200);
    if (this.plot && this.plot.width === width) return this.plot.setData(data);
    this.forget();
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "11px system-ui" };
    put(this.chart, el("p", { class: "note" }, `Rows by batch${history.length > 300 ? "es" : ""}: late (full line), rejected (dashed).`));
    this.plot = new uPlot({
      width, height: 120, legend: { show: false }, cursor: { sync: { key: "tidegate" }, y: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [{ ...axis, space: 70, size: 28, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 66 }],
      series: [{}, { label: "late", stroke: colour("match"), width: 1.6, points: { show: false } }, { label: "rejected", stroke: colour("write"), width: 1.6, dash: [6, 4], points: { show: false } }],
    }, data, this.chart);
    this.plot.root.setAttribute("role", "img");
    this.plot.root.setAttribute("aria-label", "Late and rejected rows over time");
  }
}
