"""An aggregate WITH BALANCE: the states that it keeps, and which of its aggregates are trimmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tidegate.approx.error import Metric
from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.held import HELD
from tidegate.operate.aggregate.ranked import RANKED, Ranking
from tidegate.operate.aggregate.sampled import SAMPLED, Sampling
from tidegate.plan.bound import argument_means, shares_work
from tidegate.query.bound import EXACT, interval_names
from tidegate.query.name import column
from tidegate.query.node import Aggregate
from tidegate.query.window import TimeWindow


def balanced_of(
    base: Aggregate, functions: Sequence[Function], texts: Mapping[str, str]
) -> tuple[Balancing, tuple[Function, ...]]:
    """How the functions of an aggregate are balanced, and the functions whose states that takes.

    One state holds the tuples for all that are trimmed: quantiles and users' aggregates, unless
    windows overlap so much that they share the exact work. All others are folded where tuples are
    read, which makes a group one partial however many tuples it has.
    """
    balance, window = base.balance, base.window
    assert balance is not None
    assert isinstance(window, TimeWindow)
    rules = Answering(
        error=balance.error,
        confidence=balance.confidence,
        metric=Metric.MAX.value,
        budget_rows=None,
        grouped=False,
    )
    held = [
        f
        for f in functions
        if f.definition.estimate in (QUANTILES, OWN) and not shares_work(f, window)
    ]
    given = {n: t for f in held for n, t in zip(f.arguments, f.types, strict=True)}
    seed = seed_of("balance", base.window, *(texts[n] for n in given))
    answers = []
    for function in functions:
        way = function.definition.estimate if function in held else KEPT
        answer = Answer(function, way, texts[function.name])
        if way == KEPT:
            answer = replace(answer, state=function.name)
        else:
            means = argument_means(function) if way == OWN else ()
            answer = replace(answer, sampled=_sample(rules, function, seed), means=means)
        answers.append(answer)
    rules = replace(rules, answers=tuple(answers))
    if not held:
        return Balancing(answering=rules), tuple(functions)
    name = f"a{len(functions)}"
    state = Function(name, HELD.name, tuple(given), tuple(given.values()), (seed,))
    kept = tuple(f for f in functions if f not in held)
    return Balancing(answering=rules, held_as=state, seed=seed), (*kept, state)


def _sample(rules: Answering, function: Function, seed: int) -> Function:
    """Who samples the tuples of a trimmed group."""
    rule: Sampling | Ranking
    if function.definition.estimate == QUANTILES:
        kind, rule = RANKED.name, Ranking(seed, function.parameters, rules.error, rules.confidence)
    else:
        user = function.parameters[0]
        kind, rule = SAMPLED.name, Sampling(seed, rules.mean_rows, user.skips_null)
    return Function(f"sample of {function.name}", kind, function.arguments, function.types, (rule,))


def exact_places(base: Aggregate) -> dict[str, exp.Expression]:
    """The columns of a bound, by name, where all aggregates are exact."""
    places: dict[str, exp.Expression] = {EXACT: exp.true()}
    for i, (name, _) in enumerate(base.aggregates):
        places |= dict.fromkeys(interval_names(name), column(f"a{i}"))
    return places
