// Says in sentences what the newest batches show: who is slow, what is serial, what grows.

import { byId, count, el, known, ms, percent, plural, put } from "./dom.js";
import { phaseOf, serialMs, workMs } from "./phases.js";

const LAST = 50;
const SLOW = 1.3;
const LEAST = 10;
const WORTH = 0.03;

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

const sum = (values) => values.reduce((total, value) => total + value, 0);

// Without the two longest of many: one batch that compiles, or is held up, makes no straggler.
const usual = (values) => (values.length < LEAST ? values : [...values].sort((a, b) => a - b).slice(0, -2));

const times = (ratio) => ratio.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

// The slowest instance of each subquery, over the newest batches with the instances of now.
export function stragglers(records) {
  const found = [];
  const newest = records.at(-1);
  for (const name of new Set((newest?.tasks ?? []).map((task) => task.subquery))) {
    const of = (record) => record.tasks.filter((task) => task.subquery === name);
    const instances = of(newest).length;
    if (instances < 2) continue;
    let from = records.length;
    while (from > Math.max(records.length - LAST, 0) && of(records[from - 1]).length === instances) from--;
    const [took, rows] = [new Map(), new Map()];
    for (const record of records.slice(from))
      for (const task of of(record)) {
        took.set(task.instance, [...(took.get(task.instance) ?? []), workMs(task)]);
        rows.set(task.instance, (rows.get(task.instance) ?? 0) + task.tuples);
      }
    const work = new Map([...took].map(([instance, values]) => [instance, sum(usual(values))]));
    const slowest = [...work.keys()].reduce((a, b) => (work.get(b) > work.get(a) ? b : a));
    const others = (of) => median([...of.keys()].filter((one) => one !== slowest).map((one) => of.get(one)));
    const ratio = work.get(slowest) / Math.max(others(work), 1e-6);
    const batches = records.length - from;
    found.push({ subquery: name, instance: slowest, ratio, rows: rows.get(slowest) / Math.max(others(rows), 1), batches, costs: (work.get(slowest) - others(work)) / usual(took.get(slowest)).length });
  }
  // What costs next to nothing of a batch is not worth a sentence.
  const whole = median(records.slice(-LAST).map((record) => record.ms));
  return found.filter((one) => one.ratio >= SLOW && one.costs >= WORTH * whole).sort((a, b) => b.ratio - a.ratio);
}

function straggler(one) {
  const why = one.rows >= SLOW
    ? `It gets ${times(one.rows)} times their rows: some keys are frequent. Rebalance, or another partitioner or routing, may help.`
    : `It gets ${times(one.rows)} times their rows: not how many they are makes it slow, but what they cost, or its machine.`;
  return ["look", `Instance ${one.instance} of ${one.subquery} is the slowest: ${times(one.ratio)} times the median of the others over the last ${plural(one.batches, "batch").replace("batchs", "batches")}, ${ms(one.costs)} more a batch. ${why}`];
}

function serial(records) {
  const total = sum(records.map((record) => record.ms));
  const share = sum(records.map(serialMs)) / Math.max(total, 1e-6);
  const steps = new Map();
  for (const record of records)
    for (const [step, spent] of Object.entries(record.driver_ms ?? {}))
      if (!["operate", "start", "between"].includes(step)) steps.set(step, (steps.get(step) ?? 0) + spent);
  const [step, spent] = [...steps].reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
  const limit = share > 0 ? ` More instances make it at most ${times(1 / share)} times as fast as it is now.` : "";
  return [
    share >= 0.3 ? "look" : "fine",
    `Serial ${Math.round(share * 100)} percent of the time: the driver works and all instances wait. Most of it is ${step}, ${ms(spent / records.length)} a batch.${limit}`,
  ];
}

function waiting(records) {
  const first = records[0];
  const last = records.at(-1);
  const total = (last.at - first.at) * 1e3 + last.ms;
  const busy = sum(records.map((record) => record.ms));
  const share = 1 - busy / Math.max(total, 1e-6);
  return share >= 0.2 ? ["fine", `Waits for input, or for its trigger, ${Math.round(share * 100)} percent of the time: there is room for more rows.`] : null;
}

function work(records) {
  const phases = new Map();
  for (const record of records)
    for (const task of record.tasks)
      for (const [step, spent] of Object.entries(task.spans_ms))
        if (!step.startsWith("spark ")) phases.set(phaseOf(step), (phases.get(phaseOf(step)) ?? 0) + spent);
  const total = sum([...phases.values()]);
  if (!total) return null;
  const [phase, spent] = [...phases].reduce((a, b) => (b[1] > a[1] ? b : a));
  return ["", `Instances spend most of their time on ${phase}: ${Math.round((spent / total) * 100)} percent of their work.`];
}

function backlog(records) {
  const rows = records.map((record) => record.backlog?.rows ?? NaN);
  const [first, last] = [rows[0], rows.at(-1)];
  return last > 0 && last > 2 * first && rows.length >= 10 ? ["look", `The backlog grows: from ${count(first)} to ${count(last)} rows in the last ${rows.length} batches.`] : null;
}

function late(picture) {
  const share = picture.rows_late / Math.max(picture.rows_in, 1);
  return share > 0 ? [share >= 0.01 ? "look" : "", `${plural(picture.rows_late, "row")} came late, ${percent(share)} of all: below is the DISORDER that would take them in.`] : null;
}

function rejected(picture) {
  if (!picture.rows_rejected) return null;
  const first = picture.first_rejected;
  return ["look", `${plural(picture.rows_rejected, "row")} could not be read${first ? `; the first, in ${first.source}: ${first.reason}` : ""}.`];
}

function shed(picture) {
  const share = picture.rows_shed / Math.max(picture.rows_in, 1);
  return share > 0 ? ["", `${percent(share)} of the rows were shed.`] : null;
}

export function drawFindings(history, picture) {
  const records = history.newest.slice(-LAST);
  const found = records.length
    ? [...stragglers(history.newest).map(straggler), serial(records), backlog(records), waiting(records), work(records)]
    : [];
  if (picture) found.push(late(picture), rejected(picture), shed(picture), ...(picture.change_lines ?? []).map((line) => ["", line]));
  if (!records.length && known(picture?.speed_up?.serial_time)) found.push(["", `Serial ${Math.round(picture.speed_up.serial_time * 100)} percent of the time over the run.`]);
  const lines = found.filter(Boolean).map(([kind, text]) => el("li", { class: kind }, text));
  put(byId("findings-list"), ...(lines.length ? lines : [el("li", {}, "Nothing yet: no batch is done.")]));
}
