"""Plans an aggregate within an error bound: the states that it keeps, and how they answer it.

Quantiles are answered from samples, group by group; everything else that panes keep is exact. One
subquery does that, as for the exact query. A user's aggregate needs all groups of a window at one
place, to combine their errors and to divide a budget among them: a second subquery does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.answer import WindowAnswer
from tidegate.operate.aggregate.bounded.answer import BoundedAnswer
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.figures import RankedAnswer
from tidegate.operate.aggregate.definition import NUMBER
from tidegate.operate.aggregate.estimate import (
    DRAWN_QUANTILES,
    DRAWN_VALUES,
    KEPT,
    MOMENTS,
    OWN,
    QUANTILES,
)
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.raw_arguments import UNFOLDED
from tidegate.operate.aggregate.functions.total import MEAN
from tidegate.operate.aggregate.sample.quantile_sample import RANKED, ROWS, TUPLES, Ranking
from tidegate.operate.aggregate.sample.sample_pool import DRAWN, Drawing
from tidegate.operate.aggregate.sample.sample_state import SAMPLED, Sampling
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.port import Ports, window_ports
from tidegate.plan.aggregate.shed import numbered
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.plan.compatibility.fingerprint import function_lines
from tidegate.plan.compatibility.query_record import Texts
from tidegate.query.clause.column import EXACT, interval_names
from tidegate.query.clause.error import ErrorBound
from tidegate.query.name import column, field
from tidegate.query.node.node import Aggregate

_SAMPLED_MEANS: ContextVar[bool] = ContextVar("sampled_means", default=False)


@contextmanager
def sampled_means() -> Iterator[None]:
    """Answer SUM, AVG, VAR and STDDEV from samples too, in queries planned inside the block.

    For measurements of such samples only: exact values are kept anyway, so it saves nothing.
    """
    before = _SAMPLED_MEANS.set(True)
    try:
        yield
    finally:
        _SAMPLED_MEANS.reset(before)


def plan_bound(asked: AskedAggregate, window: WindowPlan, bound: ErrorBound) -> PlannedAnswer:
    """Plan the functions of an aggregate within an error.

    What panes keep anyway is exact. Quantiles of one argument share a sample, and so do users'
    aggregates with the same arguments.
    """
    base, texts = asked.base, asked.texts
    rules = Answering(
        error=bound.allowed.size,
        scale=type(bound.allowed),
        confidence=bound.confidence,
        metric=bound.metric,
        budget_rows=bound.budget_rows,
        grouped=bool(base.keys),
        window_rows=bound.budget_rows,
    )
    rules = replace(rules, budget_rows=_divided(rules, asked.functions))
    answers = [_answer(rules, function, window, texts) for function in asked.functions]
    samples = _samples(rules, answers, base, texts)
    answers = [replace(a, sampled=samples.get(_sample_key(rules, a))) for a in answers]
    rules = replace(rules, answers=tuple(answers))
    exact = [_exact(answer) for answer in answers if answer.state is not None]
    means = [mean for answer in answers for mean in answer.means if mean is not None]
    functions = (*exact, *samples.values(), *dict.fromkeys(means))
    answer: WindowAnswer = BoundedAnswer(rules)
    ports, after, shown = interval_ports(asked)
    if all(a.way in (KEPT, QUANTILES) for a in answers):  # each group answers for itself
        ranked = (f for f in functions if f.definition is RANKED)
        answer = RankedAnswer(rules, tuple((f.name, f.parameters[0]) for f in ranked))
        types = dict(asked.keys) | {f.name: f.result for f in functions}
        ports, after, _ = window_ports(asked.unit, base, types, texts, _places(rules, base))
    return PlannedAnswer(
        answer=answer,
        functions=functions,
        prefixes=numbered(asked.prefixes) if rules.sampled else asked.prefixes,
        ports=ports,
        after=after,
        shown=shown,
        lines=(f"bound {bound}", *function_lines(functions)),
        clauses=(str(bound).lower(),),
    )


def _answer(rules: Answering, function: Function, window: WindowPlan, texts: Texts) -> Answer:
    """How one function is answered, without its sample."""
    way = _way(rules, function, window)
    answer = Answer(function, way, texts[function.name])
    if way == OWN:
        unfolded = function.parameters[0].exact_fallback and not _draws(rules, function)
        state = f"{function.name}x" if unfolded else None
        return replace(answer, state=state, means=argument_means(function))
    return (
        answer
        if way in (QUANTILES, DRAWN_QUANTILES, DRAWN_VALUES)
        else replace(answer, state=function.name)
    )


def _divided(rules: Answering, functions: Sequence[Function]) -> int | None:
    """The share of the budget for each sample, if every aggregate that may be sampled is."""
    ways = (QUANTILES, OWN, *(MOMENTS if _SAMPLED_MEANS.get() else ()))
    sampled = [f for f in functions if f.definition.estimate in ways]
    keys = {_shared_sample(rules, f, f.definition.estimate) for f in sampled}
    return rules.budget_rows and max(rules.budget_rows // max(len(keys), 1), 1)


def _draws(rules: Answering, function: Function) -> bool:
    """Whether samples are drawn at the end of a window, from tuples on disk.

    They are if groups share a budget, or if an exact answer may need all tuples.
    """
    if rules.budget_rows is None:
        return False
    own = function.definition.estimate == OWN
    if own:
        return bool(function.parameters[0].exact_fallback)
    return rules.grouped or rules.by_value


def _places(rules: Answering, base: Aggregate) -> dict[str, exp.Expression]:
    """The query's columns, as expressions over windows whose groups are answered one by one."""
    exact: list[exp.Expression] = []
    places: dict[str, exp.Expression] = {}
    for (name, _), answer in zip(base.aggregates, rules.answers, strict=True):
        ends: list[exp.Expression] = [column(str(answer.state))] * 3
        if answer.sampled is not None:
            state, ranking = column(answer.sampled.name), answer.sampled.parameters[0]
            number = ranking.fractions.index(answer.function.parameters[0])
            ends = [field(state, f"{end}{number}") for end in ("value", "low", "high")]
            exact.append(exp.GTE(this=field(state, ROWS), expression=field(state, TUPLES)))
        places |= dict(zip((name, *interval_names(name)), ends, strict=True))
    every = reduce(lambda a, b: exp.And(this=a, expression=b), exact or [exp.true()])
    return places | {EXACT: every}


def _way(rules: Answering, function: Function, window: WindowPlan) -> str:
    way = function.definition.estimate
    if way == QUANTILES:
        return _quantile_way(rules, function, window)
    if way == OWN:
        kept = function.parameters[0].exact_fallback and window.shares_work(function)
        return KEPT if kept else way
    return way if way in MOMENTS and _SAMPLED_MEANS.get() else KEPT


def _quantile_way(rules: Answering, function: Function, window: WindowPlan) -> str:
    if not rules.samples_quantile(function):
        return KEPT
    if not _draws(rules, function):
        return QUANTILES
    if window.shares_work(function):
        return KEPT
    return DRAWN_VALUES if rules.by_value else DRAWN_QUANTILES


_Key = tuple[str, tuple[str, ...], bool]
"""The key of a sample; aggregates with the same key share it."""


def _sample_key(rules: Answering, answer: Answer) -> _Key | None:
    return None if answer.way == KEPT else _shared_sample(rules, answer.function, answer.way)


def _shared_sample(rules: Answering, function: Function, way: str) -> _Key:
    skips = way != OWN or function.parameters[0].skips_null
    kind = RANKED if way == QUANTILES else SAMPLED
    return (DRAWN if _draws(rules, function) else kind).name, function.arguments, skips


def _samples(
    rules: Answering, answers: Sequence[Answer], base: Aggregate, texts: Mapping[str, str]
) -> dict[_Key | None, Function]:
    """The sampling function of each key, shared by its aggregates."""
    found: dict[_Key | None, Function] = {}
    keys = [_sample_key(rules, answer) for answer in answers]
    for key in dict.fromkeys(keys):
        if key is None:
            continue
        kind, arguments, skips_null = key
        own = [a.function for a, its in zip(answers, keys, strict=True) if its == key]
        seed = seed_of("sample", base.window, *(texts[name] for name in arguments))
        rule = _RULES[kind](rules, seed, own, skips_null)
        found[key] = Function(f"s{len(found)}", kind, arguments, own[0].types, (rule,))
    return found


def _sampling(rules: Answering, seed: int, own: Sequence[Function], skips_null: bool) -> Sampling:
    return Sampling(seed, rules.mean_rows, skips_null, rules.budget_rows)


def _ranking(rules: Answering, seed: int, own: Sequence[Function], skips_null: bool) -> Ranking:
    fractions = tuple(dict.fromkeys(f.parameters[0] for f in own))
    return Ranking(seed, fractions, rules.error, rules.rank_confidence, rules.budget_rows)


def _drawing(rules: Answering, seed: int, own: Sequence[Function], skips_null: bool) -> Drawing:
    assert rules.budget_rows is not None
    ranks = [f.definition.estimate == QUANTILES and not rules.by_value for f in own]
    pairs = list(zip(own, ranks, strict=True))
    rows = [rules.quantile_rows(f) if by_rank else rules.mean_rows for f, by_rank in pairs]
    sampling = Sampling(seed, min(max(rows), rules.budget_rows), skips_null)
    return Drawing(sampling, rules.budget_rows, min(rows) if all(ranks) else 1)


_RULES: dict[str, Callable[[Answering, int, Sequence[Function], bool], object]] = {
    SAMPLED.name: _sampling,
    RANKED.name: _ranking,
    DRAWN.name: _drawing,
}


def _exact(answer: Answer) -> Function:
    """The function whose state gives an aggregate exactly; for a user's, its unfolded tuples."""
    assert answer.state is not None
    if answer.way != OWN:
        return replace(answer.function, name=answer.state)
    return replace(answer.function, name=answer.state, kind=UNFOLDED.name, parameters=())


def argument_means(function: Function) -> tuple[Function | None, ...]:
    """The function for the exact mean of each numeric argument of a user's aggregate."""
    named = zip(function.arguments, function.types, strict=True)
    return tuple(
        Function(f"mean of {name}", MEAN.name, (name,), (type_,)) if NUMBER.accepts(type_) else None
        for name, type_ in named
    )


def interval_ports(
    asked: AskedAggregate, places: Mapping[str, exp.Expression] | None = None
) -> Ports:
    """The ports with intervals: l* and h* are the ends of a*, and e0 is whether all are exact.

    `places` replaces the expressions of some columns.
    """
    types, texts = asked.columns | {"e0": pa.bool_()}, dict(asked.texts) | {"e0": "exact"}
    found: dict[str, exp.Expression] = {EXACT: column("e0")}
    for i, ((name, _), function) in enumerate(
        zip(asked.base.aggregates, asked.functions, strict=True)
    ):
        low, high = interval_names(name)
        types |= {f"l{i}": function.result, f"h{i}": function.result}
        text = asked.texts[function.name]
        texts |= {f"l{i}": f"low end of {text}", f"h{i}": f"high end of {text}"}
        found |= {low: column(f"l{i}"), high: column(f"h{i}")}
    return window_ports(asked.unit, asked.base, types, texts, places or found)
