// What a summary has of a run whose single batches are not known: medians of steps, totals of instances.

import { count, el, known, ms, painted, table } from "./dom.js";
import { phaseOf } from "./phases.js";

const bar = (share) => el("span", { class: "meter" }, painted(el("i"), "width", `${Math.min(share * 100, 100)}%`));

const STEP_COLUMNS = [["who"], ["step"], ["phase"], ["a batch, median", "number"], [""]];
const INSTANCE_COLUMNS = [["instance"], ["busy"], ["rows out", "number"], ["CPU", "number"]];

export function summaryTables(picture) {
  const steps = (spans, who) => Object.entries(spans ?? {}).filter(([step, took]) => took > 0 && step !== "start" && !step.startsWith("spark ")).map(([step, took]) => [who, step, took]);
  const all = [...steps(picture?.spans_ms, "driver"), ...steps(picture?.tasks_ms, "instances")].sort((a, b) => b[2] - a[2]);
  const longest = Math.max(...all.map(([, , took]) => took), 1e-9);
  const made = all.map(([who, step, took]) => [who, step, step === "operate" ? "waits for instances" : phaseOf(step), ms(took), bar(took / longest)]);
  const instances = (picture?.per_instance ?? []).map((one) => {
    const busy = picture.load?.[one.subquery]?.utilisation?.[one.instance];
    return [`${one.subquery} ${one.instance}`, el("span", {}, bar(busy ?? 0), known(busy) ? `${Math.round(busy * 100)}%` : "–"), count(one.outputs), ms(one.cpu_us / 1e3)];
  });
  return [
    made.length ? table("Steps of a batch, over the run; those of instances are of all together", STEP_COLUMNS, made) : null,
    instances.length ? table("Instances, over the run", INSTANCE_COLUMNS, instances) : null,
  ].filter(Boolean);
}
