// The target of a query, its budget, and what the policy decided for it: alternatives, outcome, regret.

import { byId, el, known, percent, plural, put, table } from "./dom.js";

// A status has it with the policy, a summary by itself.
const toldOf = (picture) => (picture?.policy?.goal ? picture.policy : picture?.controller);

export const goalOf = (picture) => toldOf(picture)?.goal;

const seconds = (value) => (known(value) ? `${value.toLocaleString("en", { maximumFractionDigits: 2 })} s` : "never");

function setting({ instances, share, splits_keys, trigger_s, batch_rows }) {
  const parts = [instances.join(" + "), share ? `${percent(share)} shed` : null];
  if (known(splits_keys)) parts.push(splits_keys ? "keys may be split" : "keys by hash");
  if (known(trigger_s)) parts.push(trigger_s ? `a batch every ${seconds(trigger_s)}` : "batches at once");
  if (known(batch_rows)) parts.push(`at most ${plural(batch_rows, "row")} each`);
  return parts.filter(Boolean).join(", ");
}

function alternative(one) {
  if (!one.instances) return `${one.remedy}: ${one.note}`;
  return `${one.remedy} (${setting(one)}): ${seconds(one.latency_s)}, ${one.holds ? "holds" : "does not hold"}`;
}

function regret(one) {
  if (!one) return "–";
  const parts = [one.instances ? plural(one.instances, "instance") : null, one.latency_s ? `${seconds(one.latency_s)} late` : null];
  return parts.filter(Boolean).join(", ") || "none";
}

function row(one) {
  return [
    String(one.batch), one.remedy, `${setting(one.before)} to ${setting(one.after)}`, one.why,
    one.alternatives.map(alternative).join("; ") || "–",
    `${seconds(one.predicted.low_s)} to ${seconds(one.predicted.high_s)}`,
    one.outcome ? `${seconds(one.outcome.latency_s)} after ${seconds(one.outcome.after_s)}` : "not known yet",
    regret(one.regret),
  ];
}

function target({ latency_s, error, instances }) {
  const parts = [`latency ${seconds(latency_s)} for 99 in 100 tuples`, error ? `error at most ${percent(error)}` : null, instances ? plural(instances, "instance") : null];
  return `Target: ${parts.filter(Boolean).join(", ")}.`;
}

function share(budget) {
  const less = budget.wanted > budget.leaves ? ` It wanted ${budget.wanted}, the budget leaves ${budget.leaves}.` : "";
  return `Budget: ${plural(budget.instances, "instance")} for ${budget.queries} ${budget.queries === 1 ? "query" : "queries"}, ${budget.held} held by this one.${less}`;
}

const COLUMNS = [["batch", "number"], ["remedy"], ["instances, and what else changed", "long"], ["reason", "long"], ["alternatives, and what was expected of them", "long"], ["expected", "number"], ["came", "number"], ["regret"]];

export function drawDecisions(history, picture) {
  const [told, budget] = [toldOf(picture), picture?.budget];
  byId("decisions").hidden = !told && !budget;
  const note = (text) => el("p", { class: "note" }, text);
  put(byId("decisions-body"),
    told ? note(target(told.goal)) : null,
    budget ? note(share(budget)) : null,
    told?.cannot ? note(`Now ${told.cannot}.`) : null,
    told?.decisions.length ? table("The newest decisions of the policy. Regret: instances more than sufficed, or time above the target.", COLUMNS, [...told.decisions].reverse().map(row)) : null,
    told && !told.decisions.length ? note("No decision so far.") : null);
}
