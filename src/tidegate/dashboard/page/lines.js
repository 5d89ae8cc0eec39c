// Rate, backlog, instances and latency over one time axis, and the table of switches.

import { byId, bytes, clock, colour, count, el, known, ms, painted, plural, put, table } from "./dom.js";
import { goalOf } from "./decisions.js";

const POINTS = 500;
const AROUND = 10;

const line = (label, tone, values, more = {}) => ({ label, tone, values, ...more });

// Each chart: its title, how a value reads, and its lines from the history; null where there is nothing to show.
// The target of latency is of 99 in 100 tuples: where there is one, so is the measured line beside it.
const CHARTS = [
  (history, starts) => ({
    title: "Rows a second", text: count,
    lines: [line("in", "match", history.binnedRate("rows_in", starts)), line("out", "close", history.binnedRate("rows_out", starts), { dash: [6, 4] })],
  }),
  (history, starts) => {
    const some = (name) => history.columns[name].subarray(0, history.length).some((value) => value > 0);
    const rows = some("backlog") || !some("backlog_bytes");
    return {
      title: rows ? "Backlog, rows" : "Backlog, bytes", text: rows ? count : bytes, none: "No backlog: the input is a replay, or its rows are not counted before they are read.",
      lines: [line("waiting", "write", history.binned(rows ? "backlog" : "backlog_bytes", starts))],
    };
  },
  (history, starts) => ({
    title: "Instances", text: count,
    lines: Object.keys(history.instances).slice(0, 6).map((name, i) =>
      line(name || "all", ["match", "write", "close", "route", "commit", "prefix"][i], history.binnedInstances(name, starts), { step: true, dash: i ? [6, 2 * i] : [] })),
  }),
  (history, starts, picture) => {
    const target = goalOf(picture)?.latency_s;
    const name = known(target) ? "p99" : "p95";
    return {
      title: "Latency", text: ms, clipped: true,
      lines: [
        line(`${name} measured`, "match", history.binned(name, starts)),
        line("predicted", "write", history.binned("predicted", starts), { dash: [6, 4] }),
        line("batch time", "merge", history.binned("ms", starts), { dash: [2, 3] }),
        line("target", "serial", starts.map(() => (known(target) ? target * 1e3 : null))),
      ],
    };
  },
];

// The top of a chart that a few outliers, such as the first batch, leave: four times the 95th percentile.
function highest(lines) {
  const values = lines.flat().filter(known).sort((a, b) => a - b);
  return Math.min(values.at(-1) ?? 0, 4 * (values[Math.floor(values.length * 0.95)] ?? 0));
}

export class Lines {
  constructor() {
    this.charts = CHARTS.map(() => {
      const head = el("h3");
      const place = el("div");
      byId("lines-picture").append(el("div", {}, head, place));
      return { head, place, plot: null, shape: "" };
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.forget());
  }

  forget() {
    for (const chart of this.charts) this.drop(chart);
  }

  drop(chart) {
    chart.plot?.destroy();
    Object.assign(chart, { plot: null, shape: "" });
    chart.place.replaceChildren();
  }

  draw(history, picture) {
    const starts = history.bins(POINTS);
    const times = starts.map((i) => history.columns.at[i]);
    this.epochs = (picture?.epochs ?? []).filter((one) => one.epoch && history.find(one.batch) < history.length)
      .map((one) => ({ ...one, at: history.columns.at[history.find(one.batch)] }));
    CHARTS.forEach((made, i) => this.drawChart(this.charts[i], made(history, starts, picture), times));
    this.drawSwitches(history, picture);
  }

  drawChart(chart, wanted, times) {
    const lines = wanted.lines.filter((one) => one.values.some(known));
    put(chart.head, wanted.title, ...lines.map((one) => {
      const key = el("i", { class: one.dash?.length ? "dashed" : null });
      key.style.borderColor = `var(--${one.tone})`;
      return el("span", {}, key, `${one.label} ${wanted.text(one.values.findLast(known))}`);
    }));
    if (!lines.length || times.length < 2) {
      this.drop(chart);
      put(chart.place, el("p", { class: "note" }, times.length < 2 ? "Needs two batches or more." : (wanted.none ?? "Nothing measured.")));
      return;
    }
    const width = Math.max(chart.place.clientWidth, 200);
    const shape = `${lines.map((one) => one.label).join("\n")}\n${wanted.title}`;
    const data = [times, ...lines.map((one) => one.values)];
    if (chart.plot && chart.shape === shape) {
      if (chart.plot.width !== width) chart.plot.setSize({ width, height: 150 });
      chart.plot.setData(data);
      return;
    }
    this.drop(chart);
    chart.shape = shape;
    chart.plot = new uPlot(this.options(wanted, lines, width), data, chart.place);
    chart.plot.root.setAttribute("role", "img");
    chart.plot.root.setAttribute("aria-label", `${wanted.title} over time: ${lines.map((one) => one.label).join(", ")}`);
  }

  options(wanted, lines, width) {
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "11px system-ui" };
    return {
      width, height: 150, legend: { show: false }, cursor: { sync: { key: "tidegate" }, y: false, drag: { setScale: true, x: true, y: false } },
      scales: { y: { range: (plot, low, high) => [0, (wanted.clipped ? highest(plot.data.slice(1)) : high) * 1.1 || 1] } },
      axes: [{ ...axis, space: 70, size: 28, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 66, values: (_, ticks) => ticks.map(wanted.text) }],
      series: [{}, ...lines.map((one) => ({
        label: one.label, stroke: colour(one.tone), width: 1.6, dash: one.dash ?? [], spanGaps: true, points: { show: false },
        paths: one.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: { draw: [(plot) => this.marks(plot)], setCursor: [(plot) => this.readout(plot, wanted, lines)] },
    };
  }

  // A line at each switch.
  marks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("switch");
    for (const epoch of this.epochs) {
      const x = plot.valToPos(epoch.at, "x", true);
      if (x >= bbox.left && x <= bbox.left + bbox.width) ctx.fillRect(Math.round(x) - 1, bbox.top, 2, bbox.height);
    }
    ctx.restore();
  }

  // What the lines show where the cursor is; all charts share it.
  readout(plot, wanted, lines) {
    const i = plot.cursor.idx;
    const place = plot.root.parentElement.previousElementSibling;
    const texts = place.querySelectorAll("span");
    lines.forEach((one, k) => {
      const values = plot.data[k + 1];
      const value = i === null || i === undefined ? values.findLast(known) : values[i];
      if (texts[k]) texts[k].lastChild.textContent = `${one.label} ${wanted.text(value)}${i === null || i === undefined ? "" : ` at ${clock(plot.data[0][i])}`}`;
    });
  }

  // Before and after are medians of ten batches; the first after a switch is not one of them.
  drawSwitches(history, picture) {
    const measured = history.columns.p95.subarray(0, history.length).some(known);
    const name = measured ? "p95" : "ms";
    const rows = (picture?.epochs ?? []).filter((one) => one.epoch).reverse().map((one) => {
      const i = history.find(one.batch);
      const seen = i < history.length && history.columns.batch[i] === one.batch;
      return [
        one.applied ? one.applied.slice(11, 19) : "", String(one.batch), one.subquery, `${one.before ?? "?"} to ${one.instances}`,
        seen ? ms(history.median(name, i - AROUND, i)) : "–",
        seen ? ms(history.columns.predicted[i]) : "–",
        seen ? ms(history.median(name, i + 1, i + 1 + AROUND)) : "–",
        `${plural(one.buckets_moved ?? 0, "bucket")}${one.bytes_moved ? `, ${bytes(one.bytes_moved)}` : ""} in ${ms(one.switch_ms)}`,
        `${one.by ?? ""}${one.why ? `: ${one.why}` : ""}`,
      ];
    });
    const what = measured ? "p95 latency" : "batch time";
    put(byId("switches"), rows.length
      ? table(`Before and after: the median ${what} of ten batches. Predicted: the latency that the model expected.`,
        [["time (UTC)"], ["batch", "number"], ["subquery"], ["instances"], ["before", "number"], ["predicted", "number"], ["after", "number"], ["moved"], ["reason", "long"]], rows)
      : el("p", { class: "note" }, "No switch so far: the number of instances has not changed."));
    for (const pending of picture?.pending ?? [])
      byId("switches").append(el("p", { class: "note" }, `Waits for the next batch: ${pending.request} of ${pending.subquery}, asked by ${pending.by}.`));
  }
}
