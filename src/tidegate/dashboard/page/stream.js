// The batch stream: a row for the driver and one for each instance, a block for each step.

import { byId, canvasContext, clock, colour, count, el, ms, painted, bytes, put, showTip, table } from "./dom.js";
import { eachBlock, layoutOf, levelsOf, phaseOf, PHASES, serialMs, spent } from "./phases.js";
import { summaryTables } from "./summary.js";
import { stragglers } from "./findings.js";

const SHOWN = [10, 20, 50, 100, 300];
const STRIP = 8;
const COARSE = 24;
const BOTTOM = 20;

export class BatchStream {
  constructor() {
    this.shown = innerWidth < 600 ? 10 : 20;
    this.top = 10;
    this.squeeze = true;
    this.chosen = null;
    this.end = null;
    this.records = [];
    this.canvas = el("canvas", {
      tabindex: "0", role: "slider", "aria-label": "Batch, arrows go from one to the next", "aria-valuemin": "0",
      onkeydown: (event) => this.key(event), onpointermove: (event) => this.hover(event), onpointerleave: () => showTip(""),
      onclick: (event) => this.choose(this.at(event)?.record.batch ?? null), onfocus: () => this.chosen === null && this.choose(this.all?.at(-1)?.batch ?? null),
    });
    byId("stream-picture").replaceChildren(this.canvas);
    byId("legend").replaceChildren(
      ...Object.entries(PHASES).map(([name, text]) => el("li", { title: text }, painted(el("i"), "background", `var(--${name})`), name)),
      el("li", { title: "the driver works and every instance waits" }, painted(el("i"), "background", "var(--serial)"), "serial"),
    );
    const sizes = el("select", { onchange: (event) => this.set({ shown: Number(event.target.value) }) },
      ...SHOWN.map((n) => el("option", { value: n, selected: n === this.shown }, `${n} batches`)));
    const squeeze = el("input", { type: "checkbox", checked: true, onchange: (event) => this.set({ squeeze: event.target.checked }) });
    this.hold = el("input", { type: "checkbox", onchange: (event) => this.set({ end: event.target.checked ? (this.records.at(-1)?.batch ?? null) : null }) });
    byId("stream-tools").replaceChildren(
      el("label", {}, "Show", sizes),
      el("label", {}, squeeze, "shorten the time between batches"),
      el("label", {}, this.hold, "hold the picture"),
    );
  }

  reset() {
    this.chosen = null;
    this.end = null;
    this.hold.checked = false;
  }

  set(values) {
    Object.assign(this, values);
    this.hold.checked = this.end !== null;
    this.redraw();
  }

  draw(history, picture) {
    this.all = history.newest;
    this.picture = picture;
    this.levels = levelsOf(picture?.plan);
    this.redraw();
  }

  redraw() {
    const all = this.all ?? [];
    let last = all.length;
    if (this.end !== null) {
      last = all.findIndex((record) => record.batch > this.end);
      if (last < 0) last = all.length;
      last = Math.max(last, Math.min(this.shown, all.length));
    }
    this.records = all.slice(Math.max(0, last - this.shown), last);
    for (const part of ["stream-picture", "stream-tools", "stream-note", "legend"]) byId(part).hidden = !this.records.length;
    if (!this.records.length) return this.details();
    this.layRows();
    this.layTime();
    this.paint();
    this.details();
  }

  // The switches among the shown batches, with where they are.
  switches() {
    return (this.picture?.epochs ?? []).filter((epoch) => epoch.epoch)
      .map((epoch) => [epoch, this.records.findIndex((record) => record.batch === epoch.batch)]).filter(([, i]) => i >= 0);
  }

  // One row for each instance that any of the shown batches has.
  layRows() {
    this.top = this.switches().length ? 36 : 10;
    const names = new Map();
    for (const record of this.records) for (const task of record.tasks) names.set(`${task.subquery}\n${task.instance}`, [task.subquery, task.instance]);
    const order = [...new Set([...names.values()].map(([subquery]) => subquery))];
    const level = (subquery) => this.levels.get(`subquery ${subquery}`) ?? 0;
    const rows = [...names.values()].sort((a, b) => level(a[0]) - level(b[0]) || order.indexOf(a[0]) - order.indexOf(b[0]) || a[1] - b[1]);
    this.height = rows.length > 24 ? 13 : rows.length > 10 ? 18 : 24;
    this.rows = new Map([["driver", { label: "driver", y: this.top + STRIP }]]);
    let y = this.top + STRIP + this.height + 6;
    let before = null;
    for (const [subquery, instance] of rows) {
      if (before !== null && before !== subquery) y += 6;
      before = subquery;
      this.rows.set(`${subquery}\n${instance}`, { label: `${subquery} ${instance}`, subquery, instance, y });
      y += this.height;
    }
    this.bottom = y;
    this.slow = stragglers(this.all ?? []);
  }

  // Where each batch begins, in shown milliseconds; long waits between batches are cut short.
  layTime() {
    const sorted = this.records.map((record) => record.ms).sort((a, b) => a - b);
    const cap = (sorted[sorted.length >> 1] ?? 0) * 0.3;
    let at = 0;
    let end = null;
    this.starts = this.records.map((record) => {
      const before = record.driver_ms?.between ?? 0;
      const gap = end === null ? before : Math.max((record.at - end) * 1e3, before);
      const cut = this.squeeze && end !== null && gap > cap + before;
      at += cut ? cap + before : gap;
      const start = { at, gap, cut };
      at += record.ms;
      end = record.at + record.ms / 1e3;
      return start;
    });
    this.total = Math.max(at, 1e-3);
  }

  paint() {
    const width = Math.max(this.canvas.parentElement.clientWidth, 280);
    const context = canvasContext(this.canvas, width, this.bottom + BOTTOM);
    const colours = Object.fromEntries(["ink", "soft", "line", "lane", "serial", "switch", "select", ...Object.keys(PHASES)].map((name) => [name, colour(name)]));
    context.font = `${this.height < 16 ? 10 : 12}px system-ui, sans-serif`;
    const labels = Math.max(...[...this.rows.values()].map((row) => context.measureText(row.label).width), 30);
    this.left = Math.min(labels + 14, width * 0.3);
    this.scale = (width - this.left - 8) / this.total;
    this.paintRows(context, width, colours);
    const chosen = this.records.findIndex((record) => record.batch === this.chosen);
    if (chosen >= 0) {
      context.fillStyle = colours.select;
      context.fillRect(this.x(chosen, 0), this.top - 4, Math.max(this.records[chosen].ms * this.scale, 2), this.bottom - this.top + 4);
    }
    this.paintBlocks(context, colours);
    this.records.forEach((record, i) => this.paintBatch(context, record, i, colours));
    this.paintSwitches(context, width, colours);
    this.paintAxis(context, width, colours);
  }

  x(i, offset) {
    return this.left + (this.starts[i].at + offset) * this.scale;
  }

  paintRows(context, width, colours) {
    const slow = new Set(this.slow.map((one) => `${one.subquery}\n${one.instance}`));
    context.textBaseline = "middle";
    for (const [key, row] of this.rows) {
      context.fillStyle = colours.lane;
      context.fillRect(this.left, row.y + 1, width - this.left - 8, this.height - 2);
      context.fillStyle = slow.has(key) ? colours.serial : colours.ink;
      context.font = `${slow.has(key) || key === "driver" ? "bold " : ""}${this.height < 16 ? 10 : 12}px system-ui, sans-serif`;
      context.fillText(slow.has(key) ? `▸ ${row.label}` : row.label, 2, row.y + this.height / 2, this.left - 6);
    }
  }

  // All blocks of one phase after the other: a colour is set once.
  paintBlocks(context, colours) {
    const driver = this.rows.get("driver").y;
    const drawn = this.records.map((record) => {
      const layout = layoutOf(record, this.levels);
      return { blocks: record.ms * this.scale < COARSE ? layout.coarse : layout.fine, ys: record.tasks.map((task) => this.rows.get(`${task.subquery}\n${task.instance}`).y) };
    });
    Object.keys(PHASES).forEach((name, phase) => {
      context.fillStyle = colours[name];
      drawn.forEach(({ blocks, ys }, i) => {
        const of = blocks[phase];
        for (let k = 0; k < of.length; k += 3) {
          const wide = (of[k + 2] - of[k + 1]) * this.scale;
          if (wide >= 0.15) context.fillRect(this.x(i, of[k + 1]), (of[k] < 0 ? driver : ys[of[k]]) + 2, Math.max(wide, 0.6), this.height - 4);
        }
      });
    });
  }

  paintBatch(context, record, i, colours) {
    context.fillStyle = colours.serial;
    const before = record.driver_ms?.gate !== undefined ? serialBefore(record) : 0;
    const after = serialMs(record) - before;
    context.fillRect(this.x(i, 0), this.top, before * this.scale, STRIP - 3);
    context.fillRect(this.x(i, record.ms - after), this.top, after * this.scale, STRIP - 3);
    context.fillStyle = colours.line;
    if (record.ms * this.scale > 6) context.fillRect(this.x(i, 0) - 0.5, this.top - 3, 1, this.bottom - this.top + 3);
    if (this.starts[i].cut) {
      context.fillStyle = colours.soft;
      const middle = this.x(i, 0) - (this.starts[i].at - (this.starts[i - 1].at + this.records[i - 1].ms)) * this.scale * 0.5;
      for (let y = this.top + STRIP; y < this.bottom; y += 6) context.fillRect(middle, y, 1, 2);
    }
  }

  paintSwitches(context, width, colours) {
    let free = [0, 0];
    context.font = "11px system-ui, sans-serif";
    for (const [epoch, i] of this.switches()) {
      const x = this.x(i, 0);
      context.fillStyle = colours.switch;
      context.fillRect(x - 1, 4, 2, this.bottom - 4);
      const text = `${epoch.subquery}: ${epoch.before} to ${epoch.instances}`;
      const wide = context.measureText(text).width;
      const line = free[0] <= x ? 0 : free[1] <= x ? 1 : -1;
      if (line < 0) continue;
      const left = Math.min(x + 4, width - wide - 2);
      context.fillText(text, left, 9 + line * 13);
      free[line] = left + wide + 8;
    }
  }

  paintAxis(context, width, colours) {
    context.fillStyle = colours.soft;
    context.font = "11px system-ui, sans-serif";
    let free = 0;
    this.records.forEach((record, i) => {
      const x = this.x(i, 0);
      const text = `${record.batch} · ${clock(record.at)}`;
      const wide = context.measureText(text).width;
      if (x < free || x + wide > width) return;
      context.fillRect(x, this.bottom + 2, 1, 4);
      context.fillText(text, x + 3, this.bottom + 11);
      free = x + wide + 18;
    });
  }

  // The batch, row and block under the pointer.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const time = (event.clientX - box.left - this.left) / this.scale;
    const y = event.clientY - box.top;
    const i = this.starts.findLastIndex((start, k) => time >= start.at - Math.max(this.records[k].driver_ms?.between ?? 0, 0));
    if (i < 0) return null;
    const record = this.records[i];
    const inside = time - this.starts[i].at;
    const found = { record, inside, row: null, block: null, beyond: inside > record.ms };
    for (const [key, row] of this.rows) if (y >= row.y && y < row.y + this.height) found.row = { ...row, key };
    const near = 1.5 / this.scale;
    eachBlock(record, this.levels, (task, step, from, to) => {
      const key = task ? `${task.subquery}\n${task.instance}` : "driver";
      if (key === found.row?.key && inside >= from - near && inside <= to + near && !(found.block && found.block.to - found.block.from > to - from)) found.block = { task, step, from, to };
    });
    return found;
  }

  hover(event) {
    const found = this.records.length ? this.at(event) : null;
    if (!found?.row) return showTip("");
    const { record, row, block } = found;
    const task = row.key === "driver" ? null : record.tasks.find((one) => one.subquery === row.subquery && one.instance === row.instance);
    const lines = [`${row.key === "driver" ? "driver" : `instance ${row.instance} of ${row.subquery}`}, batch ${record.batch}`];
    if (block) lines.push(`${block.step}: ${ms((block.task ? block.task.spans_ms : record.driver_ms)[block.step])} (${phaseOf(block.step)})`);
    else lines.push(found.beyond ? "waits for the next batch" : "waits");
    if (task) lines.push(`${count(task.tuples)} rows in, ${count(task.outputs)} out, CPU ${ms(task.cpu_ms)}`);
    lines.push(`batch: ${count(record.rows_in)} rows in, ${count(record.rows_out)} out, ${ms(record.ms)}`);
    showTip(lines.join("\n"), event.clientX, event.clientY);
  }

  key(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
    const all = this.all ?? [];
    if (!(event.key in moves) || !all.length) return;
    event.preventDefault();
    const now = all.findIndex((record) => record.batch === this.chosen);
    this.choose(all[Math.max(0, Math.min((now < 0 ? all.length : now) + moves[event.key], all.length - 1))].batch);
  }

  // Shows a batch's figures below; a batch that is out of sight is brought into it.
  choose(batch) {
    this.chosen = batch;
    const inSight = this.records.some((record) => record.batch === batch);
    this.set({ end: batch === null ? this.end : inSight ? (this.end ?? this.records.at(-1).batch) : batch });
  }

  details() {
    const newest = this.all?.at(-1);
    this.canvas.setAttribute("aria-valuemax", newest?.batch ?? 0);
    const record = this.all?.find((one) => one.batch === this.chosen);
    this.canvas.setAttribute("aria-valuenow", record?.batch ?? newest?.batch ?? 0);
    this.canvas.setAttribute("aria-valuetext", record ? `batch ${record.batch}, ${ms(record.ms)}, ${count(record.rows_in)} rows in, serial ${ms(serialMs(record))}` : "none chosen");
    const place = byId("stream-details");
    if (!newest) {
      const known = summaryTables(this.picture);
      return put(place, el("p", { class: "note" }, known.length ? "Single batches are not known here." : "No batch is done yet."), el("div", { class: "split" }, ...known));
    }
    if (!record) return put(place, el("p", { class: "note" }, "Click a batch, or go to the picture with Tab and use the arrow keys, for all its figures."));
    const steps = (spans) => Object.entries(spans ?? {}).map(([step, took]) => `${step.replace(/^(map|instance|merge) /, "")} ${ms(took)}`).join(", ");
    const driver = ["driver", "", "", ms(serialMs(record)), "", steps(record.driver_ms)];
    const rows = record.tasks.map((task) => [`${task.subquery} ${task.instance}`, count(task.tuples), count(task.outputs), ms(spent(task.spans_ms, "map ", "instance ", "merge ")), ms(task.cpu_ms), steps(task.spans_ms)]);
    const title = `Batch ${record.batch} at ${clock(record.at)}: ${ms(record.ms)}, ${count(record.rows_in)} rows in, ${count(record.rows_out)} out, state ${count(record.state_rows)} rows in ${bytes(record.state_bytes)}`;
    put(place, table(title, [["who"], ["rows in", "number"], ["rows out", "number"], ["works", "number"], ["CPU", "number"], ["steps", "long"]], [driver, ...rows]));
  }
}

// Serial milliseconds before the instances begin.
function serialBefore(record) {
  let total = 0;
  for (const [step, took] of Object.entries(record.driver_ms)) {
    if (step === "operate") return total;
    if (step !== "between" && step !== "start") total += took;
  }
  return 0;
}
