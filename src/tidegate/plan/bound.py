"""An aggregate within an error bound: the states that it keeps, and how these answer it.

Quantiles are answered from samples group by group, and all else that panes keep is exact: one
subquery does it, as for the exact query. A user's aggregate needs all groups of a window together,
whose errors are put together and among which a budget is divided: a second subquery does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.figures import RankedColumns
from tidegate.operate.aggregate.definition import NUMBER
from tidegate.operate.aggregate.estimate import KEPT, MOMENTS, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.total import MEAN
from tidegate.operate.aggregate.functions.unfolded import UNFOLDED
from tidegate.operate.aggregate.overlap import overlaps
from tidegate.operate.aggregate.ranked import RANKED, ROWS, TUPLES, Ranking
from tidegate.operate.aggregate.sampled import SAMPLED, Sampling
from tidegate.query.bound import EXACT, interval_names
from tidegate.query.name import column, field
from tidegate.query.node import Aggregate
from tidegate.query.window import TimeWindow

_SAMPLED_MEANS: ContextVar[bool] = ContextVar("sampled_means", default=False)


@contextmanager
def sampled_means() -> Iterator[None]:
    """Have SUM, AVG, VAR and STDDEV answered from samples by queries that are planned inside.

    Their exact values are kept in any case, so that nothing is gained: it is for measuring what
    samples of means do.
    """
    before = _SAMPLED_MEANS.set(True)
    try:
        yield
    finally:
        _SAMPLED_MEANS.reset(before)


@dataclass(frozen=True)
class Bounding:
    """How the aggregates of a query are answered, and the functions whose states that takes."""

    answering: Answering
    functions: tuple[Function, ...]
    together: bool
    """Whether the groups of a window have to be answered together."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns of closed windows."""
        return {f.name: f.result for f in self.functions}

    @property
    def told(self) -> RankedColumns:
        """Where closed windows have what is told of them."""
        ranked = (f for f in self.functions if f.definition is RANKED)
        return RankedColumns(self.answering, tuple((f.name, f.parameters[0]) for f in ranked))

    def places(self, base: Aggregate) -> dict[str, exp.Expression]:
        """What the columns of the query are over those of closed windows."""
        exact: list[exp.Expression] = []
        places: dict[str, exp.Expression] = {}
        for (name, _), answer in zip(base.aggregates, self.answering.answers, strict=True):
            ends: list[exp.Expression] = [column(str(answer.state))] * 3
            if answer.sampled is not None:
                state, ranking = column(answer.sampled.name), answer.sampled.parameters[0]
                number = ranking.fractions.index(answer.function.parameters[0])
                ends = [field(state, f"{end}{number}") for end in ("value", "low", "high")]
                exact.append(exp.GTE(this=field(state, ROWS), expression=field(state, TUPLES)))
            places |= dict(zip((name, *interval_names(name)), ends, strict=True))
        every = reduce(lambda a, b: exp.And(this=a, expression=b), exact or [exp.true()])
        return places | {EXACT: every}


def bounded_of(
    base: Aggregate, functions: Sequence[Function], texts: Mapping[str, str]
) -> Bounding:
    """How the functions of an aggregate within an error are answered.

    What panes keep anyway is exact. Quantiles of one argument share a sample, and so do users'
    aggregates of the same arguments.
    """
    bound, window = base.bound, base.window
    assert bound is not None
    assert isinstance(window, TimeWindow)
    rules = Answering(
        error=bound.error,
        confidence=bound.confidence,
        metric=bound.metric,
        budget_rows=bound.budget_rows,
        grouped=bool(base.keys),
    )
    answers = []
    for function in functions:
        way = _way(rules, function, window)
        answer = Answer(function, way, texts[function.name])
        if way == OWN and function.parameters[0].exact_fallback:
            answer = replace(answer, state=f"{function.name}x")
        elif way not in (QUANTILES, OWN):
            answer = replace(answer, state=function.name)
        if way == OWN:
            answer = replace(answer, means=argument_means(function))
        answers.append(answer)
    samples = _samples(rules, answers, base, texts)
    answers = [replace(a, sampled=samples.get(_sample_key(a))) for a in answers]
    exact = [_exact(answer) for answer in answers if answer.state is not None]
    means = [mean for answer in answers for mean in answer.means if mean is not None]
    return Bounding(
        replace(rules, answers=tuple(answers)),
        (*exact, *samples.values(), *dict.fromkeys(means)),
        together=any(a.way not in (KEPT, QUANTILES) for a in answers),
    )


def _way(rules: Answering, function: Function, window: TimeWindow) -> str:
    way = function.definition.estimate
    if way == QUANTILES:
        return way if rules.samples_quantile(function) else KEPT
    if way == OWN:
        kept = function.parameters[0].exact_fallback and shares_work(function, window)
        return KEPT if kept else way
    return way if way in MOMENTS and _SAMPLED_MEANS.get() else KEPT


_Key = tuple[str, tuple[str, ...], bool]
"""What aggregates have in common that share a sample."""


def _sample_key(answer: Answer) -> _Key | None:
    if answer.way == KEPT:
        return None
    skips = answer.way != OWN or answer.function.parameters[0].skips_null
    return (
        RANKED.name if answer.way == QUANTILES else SAMPLED.name,
        answer.function.arguments,
        skips,
    )


def _samples(
    rules: Answering, answers: Sequence[Answer], base: Aggregate, texts: Mapping[str, str]
) -> dict[_Key | None, Function]:
    """The functions that sample for aggregates, by what these have in common."""
    found: dict[_Key | None, Function] = {}
    for key in dict.fromkeys(map(_sample_key, answers)):
        if key is None:
            continue
        kind, arguments, skips_null = key
        own = [a.function for a in answers if _sample_key(a) == key]
        seed = seed_of("sample", base.window, *(texts[name] for name in arguments))
        rule: Sampling | Ranking = Sampling(seed, rules.mean_rows, skips_null)
        if kind == RANKED.name:
            fractions = tuple(dict.fromkeys(f.parameters[0] for f in own))
            rule = Ranking(seed, fractions, rules.error, rules.rank_confidence)
        found[key] = Function(f"s{len(found)}", kind, arguments, own[0].types, (rule,))
    return found


def _exact(answer: Answer) -> Function:
    """Whose state gives an aggregate exactly: its own, or what one of a user's is folded from."""
    assert answer.state is not None
    if answer.way != OWN:
        return replace(answer.function, name=answer.state)
    return replace(answer.function, name=answer.state, kind=UNFOLDED.name, parameters=())


def argument_means(function: Function) -> tuple[Function | None, ...]:
    """What gives the exact mean of each argument of a user's aggregate, where that is a number."""
    named = zip(function.arguments, function.types, strict=True)
    return tuple(
        Function(f"mean of {name}", MEAN.name, (name,), (type_,)) if NUMBER.accepts(type_) else None
        for name, type_ in named
    )


def shares_work(function: Function, window: TimeWindow) -> bool:
    """Whether windows overlap so much that they share the exact work of a function."""
    return overlaps(-(-window.range_us // window.slide_us), (function,))


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
