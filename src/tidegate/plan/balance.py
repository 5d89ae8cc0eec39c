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
from tidegate.operate.aggregate.operator import INSTANCE
from tidegate.query.bound import EXACT, interval_names
from tidegate.query.name import column
from tidegate.query.node import Aggregate


def balanced_of(
    base: Aggregate, functions: Sequence[Function], texts: Mapping[str, str], partial: str | None
) -> tuple[Balancing, tuple[Function, ...]]:
    """How the functions of an aggregate are balanced, and the functions whose states that takes.

    One state holds the tuples for all that are trimmed. Sums and means are folded where tuples are
    read, which makes a group one partial however many tuples it has; where `partial` says that
    instances fold, they are trimmed too.
    """
    balance = base.balance
    assert balance is not None
    rules = Answering(
        error=balance.error,
        confidence=balance.confidence,
        metric=Metric.MAX.value,
        budget_rows=None,
        grouped=False,
    )
    answers: list[Answer] = []
    states: list[Function] = []
    for function in functions:
        way = rules.way(function)
        if way in (QUANTILES, OWN) or (way != KEPT and partial == INSTANCE):
            answers.append(Answer(function, way, None, texts[function.name]))
            continue
        state = f"a{len(states)}"
        states.append(replace(function, name=state))
        answers.append(Answer(function, KEPT, state, texts[function.name]))
    held = [a.function for a in answers if a.way != KEPT]
    if not held:
        return Balancing(answering=replace(rules, answers=tuple(answers))), tuple(functions)
    given = {n: t for f in held for n, t in zip(f.arguments, f.types, strict=True)}
    seed = seed_of("balance", base.window, *(texts[n] for n in given))
    name, arguments, types = f"a{len(states)}", tuple(given), tuple(given.values())
    rules = replace(rules, answers=tuple(answers), sample=name, arguments=arguments)
    states.append(Function(name, HELD.name, arguments, types, (seed,)))
    return Balancing(answering=rules, types=types, seed=seed), tuple(states)


def exact_places(base: Aggregate) -> dict[str, exp.Expression]:
    """The columns of a bound, by name, where all aggregates are exact."""
    places: dict[str, exp.Expression] = {EXACT: exp.true()}
    for i, (name, _) in enumerate(base.aggregates):
        places |= dict.fromkeys(interval_names(name), column(f"a{i}"))
    return places
