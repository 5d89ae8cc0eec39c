"""Plans an aggregate that sheds: which tuples its prefixes keep, and how results are estimated.

- Uniform: the ordinary aggregate runs over the kept tuples, and its results are scaled by the rate.
- By concept: one function stands for all (`aggregate.shed.concept_aggregate`), and the results of a
  group are scaled by the group's own counts.
- By concept total: another function stands for all (`aggregate.shed.candidates`), and a second
  subquery divides the tuples that may be kept among the groups of a window.

If the rate changed inside a window, counts, sums and means are corrected by sums over the excess of
tuples (`operate.sieve`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.approx.rate import SLACK
from tidegate.batch import ORDER
from tidegate.operate.aggregate.definition import RuledFunction
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.count import COUNT
from tidegate.operate.aggregate.functions.spread import SPREAD
from tidegate.operate.aggregate.functions.total import (
    COUNTED_MEAN,
    COUNTED_MEAN_FIELDS,
    MEAN,
    SUM,
)
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.shed.candidates import CANDIDATES, Candidacy
from tidegate.operate.aggregate.shed.concept_aggregate import REPRESENTED, SAMPLED, Representation
from tidegate.operate.aggregate.shed.figures import ShedAnswer
from tidegate.operate.aggregate.shed.total import TotalAnswer
from tidegate.operate.sieve import (
    DUE,
    PRIORITY,
    TUPLES,
    ByGroup,
    Excess,
    ExcessOfTuples,
    ExcessTimesValue,
    InTotal,
    Sieve,
)
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.plan.physical import Prefix
from tidegate.query.clause.column import KEPT
from tidegate.query.clause.pairs import ShedPairs
from tidegate.query.clause.shed import CONCEPT, TOTAL, UNIFORM, Shed
from tidegate.query.name import column, field
from tidegate.schema import type_name

FEWEST = 2
"""By concept, at least so many tuples of each group are kept: a single one says nothing about the
spread."""

_COUNTED = {MEAN.name: COUNTED_MEAN.name}
"""A mean that is corrected takes the number of its values, which its state has."""

_SEED = seed_of("shed")
"""The same for all queries, so that two queries on one stream keep the same tuples."""

CANDIDATES_ALONE = 16
"""Without GROUP BY, at least so many tuples of a pane are candidates."""


def plan_shed(asked: AskedAggregate, window: WindowPlan, shed: Shed) -> PlannedAnswer:
    """Plan the answer: functions over the kept tuples, and ports that scale their results."""
    base, way = asked.base, _WAYS[shed.by](asked, window, shed)
    places = {KEPT: way.share}
    for (name, _), function in zip(base.aggregates, asked.functions, strict=True):
        places[name] = way.estimate(function)
    answer = way.answer(
        rate=float(shed.first),
        keys=tuple(name for name, _ in asked.keys),
        state=way.state,
        counts=way.counts,
        spreads=way.spreads,
        sums=any(f.definition.scales for f in asked.functions),
        excess=way.columns.excess_name(ExcessOfTuples()),
        sampled=way.sampled,
    )
    functions, sieve = way.functions(), way.sieve()
    kept_as = {KEPT: column(KEPT)}
    known = asked.columns | {KEPT: pa.float64()}
    _, _, shown = window_ports(asked.unit, base, known, asked.texts, kept_as)
    types = dict(asked.keys) | {f.name: f.result for f in functions}
    ports, after, _ = window_ports(asked.unit, base, types, asked.texts, places)
    return PlannedAnswer(
        answer=answer,
        functions=functions,
        prefixes=tuple(replace(prefix, sieve=sieve) for prefix in numbered(asked.prefixes)),
        ports=ports,
        after=after,
        shown=shown,
        lines=(f"shed {shed}",),
        clauses=(str(shed).lower(),),
    )


class _Columns:
    """The functions whose states are kept, each once, and the names of their results.

    With `state` the results are fields of that one column; without it each is a column.
    """

    def __init__(self, functions: Sequence[Function], state: str | None) -> None:
        self._state = state
        self._named: dict[Function, str] = {}
        self.excesses: dict[Excess, str] = {}
        """The name of the sum of each excess."""
        for function in functions:
            self.add(function)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions, named as their results."""
        return tuple(replace(f, name=name) for f, name in self._named.items())

    def add(self, function: Function) -> str:
        """The name of a function's result; adds the function unless an equal one is there."""
        lead = "a" if self._state is None else "r"
        return self._named.setdefault(replace(function, name=""), f"{lead}{len(self._named)}")

    def value(self, function: Function) -> exp.Expression:
        return self.at(self.add(function))

    def at(self, name: str) -> exp.Expression:
        return column(name) if self._state is None else field(column(self._state), name)

    def excess_name(self, of: Excess) -> str:
        name = self.excesses[of] = self.add(Function("", SUM.name, (str(of),), (pa.float64(),)))
        return name

    def excess(self, of: Excess) -> exp.Expression:
        """The sum of an excess; NULL if the rate did not change."""
        return self.at(self.excess_name(of))


class _Way:
    """How an aggregate sheds: the states, the kept share, and how results are scaled.

    This base class is the uniform way: an ordinary aggregate with the rate of the clause.
    """

    state: ClassVar[str | None] = None
    answer: ClassVar[type[ShedAnswer]] = ShedAnswer

    def __init__(self, asked: AskedAggregate, window: WindowPlan, shed: Shed) -> None:
        self.asked, self.shed, self.window = asked, shed, window
        kept = [self.folded(f) for f in asked.functions if not self.knows(f)]
        self.columns = _Columns(kept, self.state)
        self.spreads = tuple(self.columns.add(f) for f in _spreads(asked.functions))

    @property
    def sampled(self) -> str | None:
        """The name of the count of tuples that the spreads are of; None if that is `counts`."""
        return None

    def knows(self, function: Function) -> bool:
        """Whether the result of a function is known exactly, without a state of its own."""
        return False

    def folded(self, function: Function) -> Function:
        """The function whose state is kept for one of the query."""
        return function

    @cached_property
    def counts(self) -> str:
        """The name of the count of kept tuples of a group."""
        return self.columns.add(Function("", COUNT.name))

    @cached_property
    def counted(self) -> exp.Expression:
        """The kept tuples, corrected to one rate if the rate changed in the window."""
        kept = _double(self.columns.at(self.counts))
        return _corrected(kept, self.columns.excess(ExcessOfTuples()))

    @property
    def factor(self) -> exp.Expression:
        return _number(1 / self.shed.first)

    @property
    def share(self) -> exp.Expression:
        of = exp.Div(this=_double(self.columns.at(self.counts)), expression=_safe(self.counted))
        return exp.Mul(this=_number(self.shed.first), expression=_safe(of))

    def estimate(self, function: Function) -> exp.Expression:
        """A function's estimate over all tuples, kept or not."""
        if function.definition is MEAN:
            return self._mean(function)
        value = self.columns.value(function)
        if not function.definition.scales:
            return value
        counts = function.definition is COUNT
        of = (ExcessOfTuples if counts else ExcessTimesValue)(function.arguments)
        return _scaled(function, value, self.columns.excess(of), self.factor)

    def _mean(self, function: Function) -> exp.Expression:
        """The weighted mean, if kept tuples stand for different numbers of tuples."""
        of = function.arguments
        mean, number = self._mean_and_number(function)
        more = self.columns.excess(ExcessOfTuples(of))
        total = exp.Add(
            this=exp.Mul(this=number, expression=_double(mean.copy())),
            expression=self.columns.excess(ExcessTimesValue(of)),
        )
        every = exp.Add(this=number.copy(), expression=more.copy())
        weighed = exp.Div(this=exp.Paren(this=total), expression=exp.Paren(this=every))
        typed = exp.cast(weighed, type_name(function.result), dialect="spark")
        return exp.If(this=_is_null(more), true=mean, false=typed)

    def _mean_and_number(self, function: Function) -> tuple[exp.Expression, exp.Expression]:
        """The mean of the kept tuples, and the number of values that it is of."""
        counting = Function("", COUNT.name, function.arguments, function.types)
        return self.columns.value(function), _double(self.columns.value(counting))

    def functions(self) -> tuple[Function, ...]:
        """The functions whose states panes keep; called after all `estimate` calls."""
        return self.columns.functions

    def sieve(self) -> Sieve:
        """The sieve of the prefixes."""
        rate, first = float(self.shed.rate), float(self.shed.first)
        return Sieve(_SEED, rate, self.by(), first, excesses=tuple(self.columns.excesses))

    def by(self) -> ByGroup | None:
        return None


class _ByConcept(_Way):
    """Keeps at least FEWEST tuples of each group; one function stands for all others."""

    state: ClassVar[str | None] = "a0"
    counts = KEPT
    fewest: ClassVar[int] = FEWEST

    def knows(self, function: Function) -> bool:
        return _counts_tuples(function)

    @property
    def factor(self) -> exp.Expression:
        return exp.Div(this=_double(self.columns.at(TUPLES)), expression=_safe(self.counted))

    @property
    def sampled(self) -> str | None:
        return SAMPLED if self.asked.keys else None

    @property
    def share(self) -> exp.Expression:
        kept, tuples = (_double(self.columns.at(name)) for name in (KEPT, TUPLES))
        return exp.Div(this=kept, expression=tuples)

    def estimate(self, function: Function) -> exp.Expression:
        if self.knows(function):
            return self.columns.at(TUPLES)
        estimated = super().estimate(function)
        if function.definition is MEAN:
            exact, _ = self._mean_and_number(function)
        elif function.definition.scales:
            exact = self.columns.value(function)
        else:
            return estimated
        whole = exp.EQ(this=self.columns.at(KEPT), expression=self.columns.at(TUPLES))
        return exp.If(this=whole, true=exact, false=estimated)

    def folded(self, function: Function) -> Function:
        return replace(function, kind=_COUNTED.get(function.kind, function.kind))

    def _mean_and_number(self, function: Function) -> tuple[exp.Expression, exp.Expression]:
        both = self.columns.value(self.folded(function))
        mean, number = (field(both, name) for name in COUNTED_MEAN_FIELDS)
        return mean, _double(number)

    def functions(self) -> tuple[Function, ...]:
        inside, given = self.columns.functions, self._given()
        corrections = [f for f in inside if f.name in self._corrections]
        rule = Representation(
            functions=tuple(f for f in inside if f.name not in self._corrections),
            corrections=tuple(corrections),
            inputs=tuple(given),
            rate=float(self.shed.rate),
            fewest=FEWEST,
        )
        return (self._one(REPRESENTED, given, {PRIORITY: pa.uint64(), TUPLES: pa.int64()}, rule),)

    @property
    def _corrections(self) -> set[str]:
        """The functions that say nothing of tuples that were not to be shed.

        Without groups the spread is that of all tuples: it gives the half error, which is known
        also while nothing is shed.
        """
        sums = self.columns.excesses.values() if self.shed.first == 1 else ()
        return {*sums, *(self.spreads if self.asked.keys else ())}

    def _given(self) -> dict[str, pa.DataType]:
        """The argument columns of all functions, with their types."""
        inside = self.columns.functions
        given = {n: t for f in inside for n, t in zip(f.arguments, f.types, strict=True)}
        ordered = any(f.definition.in_order for f in inside)
        return given | (dict.fromkeys(ORDER, pa.int64()) if ordered else {})

    def _one(
        self,
        definition: RuledFunction,
        given: Mapping[str, pa.DataType],
        beside: Mapping[str, pa.DataType],
        rule: object,
    ) -> Function:
        """The function that stands for all; the sieve computes its arguments in `beside`."""
        assert self.state is not None
        names, types = (*beside, *given), (*beside.values(), *given.values())
        return Function(self.state, definition.name, names, types, (rule,))

    def by(self) -> ByGroup:
        return ByGroup(*self._panes())

    def _panes(self) -> tuple[tuple[str, ...], int, int, int]:
        panes = self.window.panes
        assert isinstance(panes, PaneWindow)  # others allow no SHED
        keys = tuple(name for name, _ in self.asked.keys)
        return keys, panes.pane_us, self.fewest, panes.offset_us


class _InTotal(_ByConcept):
    """Keeps a share of all tuples of a window; a second subquery divides it among the groups."""

    answer: ClassVar[type[ShedAnswer]] = TotalAnswer
    sampled: ClassVar[str | None] = None

    def functions(self) -> tuple[Function, ...]:
        inside, given, by = self.columns.functions, self._given(), self.by()
        beside = {PRIORITY: pa.uint64(), TUPLES: pa.int64(), DUE: pa.int64()}
        rule = Candidacy(inside, tuple(given), by.limit(float(self.shed.rate)), by.fewest)
        return (self._one(CANDIDATES, given, beside, rule),)

    def by(self) -> ByGroup:
        keys, pane_us, _, offset_us = self._panes()
        return InTotal(keys, pane_us, 1 if keys else CANDIDATES_ALONE, offset_us, SLACK)


_WAYS: Mapping[str, type[_Way]] = {CONCEPT: _ByConcept, TOTAL: _InTotal, UNIFORM: _Way}


def plan_pairs(asked: AskedAggregate, window: WindowPlan, pairs: ShedPairs) -> PlannedAnswer:
    """Plan an aggregate over a join that sheds for it: exact over the pairs that there are.

    The figures of its windows say how many pairs those stand for.
    """
    answer = ShedAnswer(
        rate=float(pairs.shed.rate) ** 2,
        keys=tuple(name for name, _ in asked.keys),
        state=None,
        counts=asked.places[pairs.counted],
        spreads=(),
        sums=False,
        estimated=asked.places[pairs.estimated],
    )
    return asked.answered(answer)


def numbered(prefixes: Sequence[Prefix]) -> tuple[Prefix, ...]:
    """The prefixes with numbered rows, from which the priorities of tuples are computed."""
    return tuple(replace(prefix, numbered=True) for prefix in prefixes)


def _counts_tuples(function: Function) -> bool:
    """Whether it is COUNT(*): by concept all tuples are counted, so it needs no estimate."""
    return function.definition is COUNT and not function.arguments


def _spreads(functions: Sequence[Function]) -> tuple[Function, ...]:
    """A function for the spread of each column with a sum or mean, for the error of these."""
    of = {f.arguments: f.types for f in functions if f.definition in (SUM, MEAN)}
    return tuple(
        Function(f"a{len(functions) + i}", SPREAD.name, arguments, types)
        for i, (arguments, types) in enumerate(of.items())
    )


def _scaled(
    function: Function, value: exp.Expression, excess: exp.Expression, factor: exp.Expression
) -> exp.Expression:
    """A value over kept tuples, scaled to all tuples, in the same type; integers are rounded."""
    type_ = function.result
    if pa.types.is_floating(type_):
        return exp.Mul(this=_safe(_corrected(value, excess)), expression=_safe(factor))
    corrected = _safe(_corrected(_double(value), excess))
    product: exp.Expression = exp.Mul(this=corrected, expression=_safe(factor))
    if pa.types.is_integer(type_):
        product = exp.Round(this=product)
    return exp.cast(product, type_name(type_), dialect="spark")


def _corrected(value: exp.Expression, excess: exp.Expression) -> exp.Expression:
    """A sum over tuples plus their excess, if there is any."""
    more = exp.Add(this=exp.Coalesce(this=value, expressions=[_number(0)]), expression=excess)
    return exp.If(this=_is_null(excess), true=value.copy(), false=more)


def _is_null(value: exp.Expression) -> exp.Expression:
    return exp.Is(this=value.copy(), expression=exp.null())


def _double(value: exp.Expression) -> exp.Expression:
    return exp.cast(value, "DOUBLE", dialect="spark")


def _number(value: object) -> exp.Expression:
    return _double(exp.Literal.string(repr(float(value))))  # type: ignore[arg-type]


def _safe(factor: exp.Expression) -> exp.Expression:
    return exp.Paren(this=factor.copy())
