"""An aggregate within an error bound: the states that it keeps, and how these answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.unfolded import UNFOLDED
from tidegate.operate.aggregate.sampled import SAMPLED, Sampling
from tidegate.query.bound import EXACT, interval_names
from tidegate.query.name import column
from tidegate.query.node import Aggregate


def bounded_of(
    base: Aggregate, functions: Sequence[Function], texts: Mapping[str, str]
) -> tuple[Answering, tuple[Function, ...]]:
    """How the functions of an aggregate are answered, and the functions whose states that takes.

    One sample serves all that are answered from one. Beside it there is what gives exact results
    where the sample will not do.
    """
    bound = base.bound
    assert bound is not None
    rules = Answering(
        error=bound.error,
        confidence=bound.confidence,
        metric=bound.metric,
        budget_rows=bound.budget_rows,
        grouped=bool(base.keys),
    )
    answers: list[Answer] = []
    states: list[Function] = []
    for function in functions:
        way, state = rules.way(function), None
        if way != QUANTILES and not (way == OWN and not function.parameters[0].exact_fallback):
            state = f"a{len(states)}"
            states.append(replace(_exact(function, way), name=state))
        answers.append(Answer(function, way, state, texts[function.name]))
    sampled = [a.function for a in answers if a.way != KEPT]
    given = {n: t for f in sampled for n, t in zip(f.arguments, f.types, strict=True)}
    if not sampled:
        return replace(rules, answers=tuple(answers)), tuple(states)
    seed = seed_of("sample", base.window, *(texts[n] for n in given))
    name, arguments = f"a{len(states)}", tuple(given)
    rules = replace(rules, answers=tuple(answers), sample=name, arguments=arguments)
    rule = Sampling(seed, rules.size)
    states.append(Function(name, SAMPLED.name, arguments, tuple(given.values()), (rule,)))
    return rules, tuple(states)


def _exact(function: Function, way: str) -> Function:
    """Whose state gives an aggregate exactly: its own, or what one of a user's is folded from."""
    return function if way != OWN else replace(function, kind=UNFOLDED.name, parameters=())


def bound_places(base: Aggregate) -> dict[str, exp.Expression]:
    """By name, where the columns are that a bound adds to an aggregate."""
    if not base.has_ends:
        return {}
    places: dict[str, exp.Expression] = {EXACT: column("e0")}
    for i, (name, _) in enumerate(base.aggregates):
        low, high = interval_names(name)
        places |= {low: column(f"l{i}"), high: column(f"h{i}")}
    return places


def bound_columns(base: Aggregate, functions: Sequence[Function]) -> dict[str, pa.DataType]:
    """The types of these columns."""
    if not base.has_ends:
        return {}
    types: dict[str, pa.DataType] = {"e0": pa.bool_()}
    for i, function in enumerate(functions):
        types |= {f"l{i}": function.result, f"h{i}": function.result}
    return types


def bound_texts(functions: Sequence[Function], texts: Mapping[str, str]) -> dict[str, str]:
    """What these columns are in the words of the query."""
    held = {"e0": "exact"}
    for i, function in enumerate(functions):
        text = texts[function.name]
        held |= {f"l{i}": f"low end of {text}", f"h{i}": f"high end of {text}"}
    return held
