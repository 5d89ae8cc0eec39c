// Which phase each step of a batch belongs to, and where in the batch it is drawn.

export const PHASES = {
  cut: "cut: the driver takes rows from the sources",
  read: "read: rows and state are read",
  prefix: "prefix: filters and expressions",
  route: "route: rows are sent to their instance",
  merge: "merge: parts are put in order",
  match: "match: rows are joined or aggregated",
  close: "close: windows are finished",
  write: "write: state and results are written",
  commit: "commit: the batch is made durable",
};

const STEPS = {
  between: "cut", gate: "cut", draft: "cut", collect: "merge", manifest: "commit", commit: "commit", publish: "write", books: "commit",
  "map read": "read", "map load": "read", "map take": "read", "map read state": "read", "map evaluate": "prefix", "map survey": "prefix",
  "map fold": "match", "map route": "route", "map ship": "route", "instance load": "read", "instance read state": "read",
  "instance merge": "merge", "instance order": "merge", "instance match": "match", "instance process": "match",
  "instance explode": "prefix", "instance answer": "match", "instance advance": "match", "instance seal": "close",
  "instance close": "close", "instance finish": "close", "instance output": "close", "instance write": "write",
  "instance report": "write", "instance ship": "route", "merge load": "read", "merge write": "write",
};

export const phaseOf = (step) => STEPS[step] ?? (step.startsWith("merge ") ? "merge" : step.startsWith("map ") ? "prefix" : "match");

// The driver waits in these, or they are outside of the batch.
const NO_WORK = new Set(["operate", "start"]);

const STAGES = ["map ", "instance ", "merge "];

export const spent = (spans, ...beginnings) => {
  let total = 0;
  for (const step in spans) for (const one of beginnings) if (step.startsWith(one)) total += spans[step];
  return total;
};

// Milliseconds in which the driver works and no instance does.
export const serialMs = (record) => Math.max(record.ms - (record.driver_ms?.operate ?? 0), 0);

export const workMs = (task) => spent(task.spans_ms, "instance ", "merge ");

// How far from the streams a subquery is: those that are equally far run at the same time.
export function levelsOf(plan) {
  const levels = new Map();
  const from = new Map();
  for (const edge of plan?.edges ?? []) from.set(edge.to, [...(from.get(edge.to) ?? []), edge.from]);
  const level = (id, seen) => {
    if (seen.has(id)) return 0;
    const above = (from.get(id) ?? []).map((one) => level(one, new Set([...seen, id])) + 1);
    return Math.max(0, ...above);
  };
  for (const node of plan?.nodes ?? []) levels.set(node.id, level(node.id, new Set()));
  return levels;
}

// Calls take(task or null for the driver, step, from, to), in milliseconds from the batch's beginning.
// Steps inside `operate` have no start times: stages follow each other as they must, from its beginning.
export function eachBlock(record, levels, take) {
  let at = 0;
  let operating = [0, 0];
  const spans = record.driver_ms ?? {};
  if (spans.between) take(null, "between", -spans.between, 0);
  for (const step in spans) {
    if (step === "between" || step === "start" || step.startsWith("spark ")) continue;
    if (!NO_WORK.has(step)) take(null, step, at, at + spans[step]);
    else operating = [at, spans[step]];
    at += spans[step];
  }
  const rounds = new Map();
  for (const task of record.tasks ?? []) {
    const level = levels.get(`subquery ${task.subquery}`) ?? 0;
    if (!rounds.has(level)) rounds.set(level, []);
    rounds.get(level).push(task);
  }
  const stages = [];
  let total = 0;
  for (const level of [...rounds.keys()].sort((a, b) => a - b))
    for (const stage of STAGES) {
      const long = Math.max(...rounds.get(level).map((task) => spent(task.spans_ms, stage)));
      if (long > 0) stages.push([rounds.get(level), stage, total]);
      total += long;
    }
  const scale = total > operating[1] ? operating[1] / total : 1;
  for (const [tasks, stage, offset] of stages)
    for (const task of tasks) {
      let start = operating[0] + offset * scale;
      for (const step in task.spans_ms) {
        if (!step.startsWith(stage)) continue;
        const end = start + task.spans_ms[step] * scale;
        take(task, step, start, end);
        start = end;
      }
    }
}

const NAMES = Object.keys(PHASES);
const layouts = new WeakMap();

// The blocks of a record by phase, each [task's place or -1 for the driver, from, to]. `coarse` has one
// block for steps that follow each other, in the colour of the longest: steps of a batch that is a
// few pixels wide would be lost one by one.
export function layoutOf(record, levels) {
  const made = layouts.get(record);
  if (made?.levels === levels.size) return made;
  const [fine, coarse] = [NAMES.map(() => []), NAMES.map(() => [])];
  const places = new Map((record.tasks ?? []).map((task, i) => [task, i]));
  let run = null;
  const end = () => run && coarse[run.phase].push(run.place, run.from, run.to);
  eachBlock(record, levels, (task, step, from, to) => {
    const place = task ? places.get(task) : -1;
    const phase = NAMES.indexOf(phaseOf(step));
    fine[phase].push(place, from, to);
    if (run?.place === place && from - run.to < 1e-6) {
      if (to - from > run.longest) Object.assign(run, { phase, longest: to - from });
      run.to = to;
      return;
    }
    end();
    run = { place, from, to, phase, longest: to - from };
  });
  end();
  const packed = (lists) => lists.map((list) => Float32Array.from(list));
  const layout = { levels: levels.size, fine: packed(fine), coarse: packed(coarse) };
  layouts.set(record, layout);
  return layout;
}
