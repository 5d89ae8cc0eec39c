"""Plans WITH BALANCE: which aggregates may be trimmed, and which states are kept."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidegate.approx.error import Metric
from tidegate.approx.priority import seed_of
from tidegate.approx.trim import TrimThresholds
from tidegate.operate.aggregate.answer import WindowAnswer
from tidegate.operate.aggregate.balanced.balancing import Balancing, folded_details
from tidegate.operate.aggregate.balanced.batch import BalancedAnswer, PointlessAnswer
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.held_tuples import HELD
from tidegate.operate.aggregate.sample.quantile_sample import RANKED, Ranking
from tidegate.operate.aggregate.sample.sample_state import SAMPLED, Sampling
from tidegate.plan.aggregate.bound import argument_means, interval_ports
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.shed import numbered
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.clause.balance import ALL, COSTLY, TRIMMED, Balance
from tidegate.query.clause.column import EXACT, interval_names
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate


def plan_balance(asked: AskedAggregate, window: WindowPlan, balance: Balance) -> PlannedAnswer:
    """Plan an aggregate WITH BALANCE.

    One state holds the tuples for all functions that may be trimmed. These are users' aggregates,
    unless windows overlap so much that they share the exact work; with TRIM ALL they are all
    functions that a sample can answer. The other functions are folded where tuples are read, so a
    group is one partial, however many tuples it has.
    """
    functions, texts = asked.functions, asked.texts
    rules = Answering(
        error=balance.error,
        confidence=balance.confidence,
        metric=Metric.MAX.value,
        budget_rows=None,
        grouped=False,
    )
    thresholds = TrimThresholds(balance.saving, balance.cold_rows)
    held = [
        f
        for f in functions
        if f.definition.estimate in TRIMMED[balance.trim]
        and (balance.trim == ALL or not window.shares_work(f))
    ]
    given = {n: t for f in held for n, t in zip(f.arguments, f.types, strict=True)}
    seed = seed_of("balance", asked.base.window, *(texts[n] for n in given))
    answers = [_answer(rules, f, f in held, seed, texts[f.name]) for f in functions]
    rules = replace(rules, answers=tuple(answers))
    answer: WindowAnswer = PointlessAnswer(folded_details(rules))
    ports, prefixes = interval_ports(asked, _exact_places(asked.base)), asked.prefixes
    if held:
        state = Function(
            f"a{len(functions)}", HELD.name, tuple(given), tuple(given.values()), (seed,)
        )
        answer = BalancedAnswer(
            Balancing(answering=rules, state=state, seed=seed, thresholds=thresholds)
        )
        functions = (*(f for f in functions if f not in held), state)
        ports, prefixes = interval_ports(asked), numbered(prefixes)
    trimmed = ", ".join(a.text for a in rules.sampled) or "nothing"
    clause = replace(balance, trim=COSTLY)  # what is trimmed is said itself
    return PlannedAnswer(
        answer,
        functions,
        prefixes,
        *ports,
        lines=(f"balance {clause} of {trimmed}",),
        clauses=(f"{str(clause).lower()} of {trimmed}",),
    )


def _answer(rules: Answering, function: Function, held: bool, seed: int, text: str) -> Answer:
    way = function.definition.estimate
    if not held:
        return Answer(function, KEPT, text, state=function.name)
    means = argument_means(function) if way == OWN else ()
    return Answer(function, way, text, sampled=_sample(rules, function, seed), means=means)


def _sample(rules: Answering, function: Function, seed: int) -> Function:
    """The sampling function for a trimmed group."""
    rule: Sampling | Ranking
    if function.definition.estimate == QUANTILES:
        kind, rule = RANKED.name, Ranking(seed, function.parameters, rules.error, rules.confidence)
    else:
        own = function.definition.estimate == OWN
        skips_null = not own or function.parameters[0].skips_null
        kind, rule = SAMPLED.name, Sampling(seed, rules.mean_rows, skips_null)
    return Function(f"sample of {function.name}", kind, function.arguments, function.types, (rule,))


def _exact_places(base: Aggregate) -> dict[str, exp.Expression]:
    """The query's columns by name, if every aggregate is exact."""
    places: dict[str, exp.Expression] = {EXACT: exp.true()}
    for i, (name, _) in enumerate(base.aggregates):
        places |= dict.fromkeys(interval_names(name), column(f"a{i}"))
    return places
