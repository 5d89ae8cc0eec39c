// What the page remembers of a query: all batches as columns of numbers, the newest as they came.

import { serialMs } from "./phases.js";

const NEWEST = 300;
const MOST = 20000;

const COLUMNS = {
  batch: (r) => r.batch,
  at: (r) => r.at,
  ms: (r) => r.ms,
  rows_in: (r) => r.rows_in,
  rows_out: (r) => r.rows_out,
  rows_late: (r) => r.rows_late,
  rows_rejected: (r) => r.rows_rejected,
  rows_shed: (r) => r.rows_shed,
  state_bytes: (r) => r.state_bytes,
  backlog: (r) => r.backlog?.rows,
  backlog_bytes: (r) => r.backlog?.bytes,
  p50: (r) => r.latency_ms?.p50,
  p95: (r) => r.latency_ms?.p95,
  p99: (r) => r.latency_ms?.p99,
  predicted: (r) => r.predicted_ms,
  serial: (r) => r.serial_ms ?? serialMs(r),
};

export const instancesOf = (record) => {
  if (record.instances_of) return record.instances_of;
  const found = {};
  for (const task of record.tasks ?? []) found[task.subquery] = Math.max(found[task.subquery] ?? 0, task.instance + 1);
  return Object.keys(found).length ? found : { "": record.instances };
};

export class History {
  constructor() {
    this.length = 0;
    this.newest = [];
    this.columns = {};
    this.instances = {};
    this.size = 512;
    for (const name in COLUMNS) this.columns[name] = new Float64Array(this.size);
  }

  get last() {
    return this.length ? this.columns.batch[this.length - 1] : -1;
  }

  add(record) {
    if (record.batch <= this.last) return;
    if (this.length === this.size) this._room();
    const i = this.length++;
    for (const name in COLUMNS) this.columns[name][i] = COLUMNS[name](record) ?? NaN;
    const counts = instancesOf(record);
    for (const name in counts) {
      this.instances[name] ??= new Float64Array(this.size).fill(NaN);
      this.instances[name][i] = counts[name];
    }
    if (!record.tasks) return;
    this.newest.push(record);
    if (this.newest.length > NEWEST) this.newest.shift();
  }

  // Twice the room, up to MOST batches; then the older half goes.
  _room() {
    const drop = this.size >= MOST ? this.size >> 1 : 0;
    const size = drop ? this.size : Math.min(this.size * 2, MOST);
    for (const shelf of [this.columns, this.instances])
      for (const name in shelf) {
        const made = new Float64Array(size).fill(NaN);
        made.set(shelf[name].subarray(drop, this.length));
        shelf[name] = made;
      }
    this.length -= drop;
    this.size = size;
  }

  // Where a batch is, or would be.
  find(batch) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.columns.batch[middle] < batch) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  median(name, from, to) {
    const values = [...this.columns[name].subarray(Math.max(from, 0), Math.max(to, 0))].filter(Number.isFinite).sort((a, b) => a - b);
    return values.length ? values[values.length >> 1] : NaN;
  }

  // Rows a second over the batches from one to another, waiting included.
  rate(name, from, to) {
    const { at, ms } = this.columns;
    from = Math.max(from, 0);
    if (to <= from) return NaN;
    let rows = 0;
    for (let i = from; i < to; i++) rows += this.columns[name][i];
    // The newest batch has no next one: it is taken to come after as long as this one did.
    const next = to < this.length ? at[to] : 2 * at[to - 1] - (at[to - 2] ?? at[to - 1]);
    const end = Math.max(next, at[to - 1] + ms[to - 1] / 1e3);
    return rows / Math.max(end - at[from], 1e-3);
  }

  // Places where bins of neighbouring batches begin, at most `most`, so that lines stay cheap.
  bins(most) {
    const step = Math.max(1, Math.ceil(this.length / most));
    const found = [];
    for (let i = 0; i < this.length; i += step) found.push(i);
    return found;
  }

  binned(name, starts) {
    return starts.map((from, i) => this._mean(this.columns[name], from, starts[i + 1] ?? this.length));
  }

  binnedInstances(name, starts) {
    return starts.map((from, i) => {
      const value = this.instances[name][(starts[i + 1] ?? this.length) - 1];
      return Number.isFinite(value) ? value : null;
    });
  }

  binnedRate(name, starts) {
    return starts.map((from, i) => this.rate(name, from, starts[i + 1] ?? this.length));
  }

  binnedSum(name, starts) {
    return starts.map((from, i) => {
      let total = 0;
      for (let j = from; j < (starts[i + 1] ?? this.length); j++) total += this.columns[name][j];
      return total;
    });
  }

  _mean(values, from, to) {
    let [total, n] = [0, 0];
    for (let i = from; i < to; i++)
      if (Number.isFinite(values[i])) {
        total += values[i];
        n++;
      }
    return n ? total / n : null;
  }
}
