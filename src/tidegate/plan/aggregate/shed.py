"""An aggregate that sheds: which tuples its prefixes keep, and what is made of those.

Uniformly, the ordinary aggregate follows, and its results are scaled by the rate. By concept, one
function stands for all of them (`operate.aggregate.represented`), and the results of a group are
scaled by its own counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.priority import seed_of
from tidegate.batch import ORDER
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.count import COUNT
from tidegate.operate.aggregate.functions.spread import SPREAD
from tidegate.operate.aggregate.functions.total import MEAN, SUM
from tidegate.operate.aggregate.pane_window import PaneWindow
from tidegate.operate.aggregate.represented import REPRESENTED, Representation
from tidegate.operate.aggregate.shed_figures import ShedAnswer
from tidegate.operate.sieve import PRIORITY, TUPLES, ByGroup, Sieve
from tidegate.plan.aggregate.asked import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.plan.physical import Prefix
from tidegate.query.clause.column import KEPT
from tidegate.query.clause.pairs import ShedPairs
from tidegate.query.clause.shed import CONCEPT, Shed
from tidegate.query.name import column, field
from tidegate.schema import type_name

FEWEST = 2
"""How many tuples of each group are kept at least, by concept: with one alone nothing could be said
of how far it may be from the others."""

_SEED = seed_of("shed")
"""One for all queries: two that read one stream keep the same tuples of it."""

_STATE = "a0"


def plan_shed(asked: AskedAggregate, window: WindowPlan, shed: Shed) -> PlannedAnswer:
    """How an aggregate that sheds is answered: results of what is kept, scaled by the ports."""
    base = asked.base
    answer, functions, places = _computed(asked, shed)
    kept_as = {KEPT: column(KEPT)}
    known = asked.columns | {KEPT: pa.float64()}
    _, _, shown = window_ports(asked.unit, base, known, asked.texts, kept_as)
    types = dict(asked.keys) | {f.name: f.result for f in functions}
    ports, after, _ = window_ports(asked.unit, base, types, asked.texts, places)
    return PlannedAnswer(
        answer=answer,
        functions=functions,
        prefixes=_sieved(asked, window, shed),
        ports=ports,
        after=after,
        shown=shown,
        lines=(f"shed {shed}",),
        clauses=(str(shed).lower(),),
    )


def _computed(
    asked: AskedAggregate, shed: Shed
) -> tuple[ShedAnswer, tuple[Function, ...], dict[str, exp.Expression]]:
    """The functions whose states are kept, and over their columns what those of the query are."""
    by_concept, functions = shed.by == CONCEPT, asked.functions
    spreads = _spreads(functions)
    answer = ShedAnswer(
        rate=float(shed.rate),
        keys=tuple(name for name, _ in asked.keys),
        state=_STATE if by_concept else None,
        counts=KEPT if by_concept else f"a{len(functions) + len(spreads)}",
        spreads=tuple(f.name for f in spreads),
        sums=any(f.definition.scales for f in functions),
    )
    kept_of = (*functions, *spreads)
    if by_concept:
        inside = [f for f in kept_of if not _counts_tuples(f)]
        fields = {f.name: f"r{i}" for i, f in enumerate(inside)}
        answer = replace(answer, spreads=tuple(fields[f.name] for f in spreads))
        kept_of = (_represented(shed, [replace(f, name=fields[f.name]) for f in inside]),)
        state = column(_STATE)
        tuples, kept = (_double(field(state, name)) for name in (TUPLES, KEPT))
        factor: exp.Expression = exp.Div(this=tuples, expression=kept)
        share: exp.Expression = exp.Div(this=kept.copy(), expression=tuples.copy())
    else:
        kept_of = (*kept_of, Function(answer.counts, COUNT.name))
        factor, share = _number(1 / shed.rate), _number(shed.rate)
    places = {KEPT: share}
    for (name, _), function in zip(asked.base.aggregates, functions, strict=True):
        if by_concept and _counts_tuples(function):
            places[name] = field(column(_STATE), TUPLES)
            continue
        own = function.name
        value = field(column(_STATE), fields[own]) if by_concept else column(own)
        places[name] = _scaled(function, value, factor) if function.definition.scales else value
    return answer, kept_of, places


def plan_pairs(asked: AskedAggregate, window: WindowPlan, pairs: ShedPairs) -> PlannedAnswer:
    """How an aggregate over a join that sheds for it is answered: exactly, of the pairs there are.

    What is told of its windows is how many pairs those stand for.
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


def _sieved(asked: AskedAggregate, window: WindowPlan, shed: Shed) -> tuple[Prefix, ...]:
    """The prefixes of an aggregate that sheds, with what they keep."""
    by = None
    if shed.by == CONCEPT:
        panes = window.panes
        assert isinstance(panes, PaneWindow)  # others allow no SHED
        keys = tuple(name for name, _ in asked.keys)
        by = ByGroup(keys, panes.pane_us, FEWEST, panes.offset_us)
    sieve = Sieve(_SEED, float(shed.rate), by)
    return tuple(replace(prefix, sieve=sieve) for prefix in numbered(asked.prefixes))


def numbered(prefixes: Sequence[Prefix]) -> tuple[Prefix, ...]:
    """The prefixes of an aggregate that chooses tuples by their priorities."""
    return tuple(replace(prefix, numbered=True) for prefix in prefixes)


def _counts_tuples(function: Function) -> bool:
    """Whether it is COUNT(*), which is counted by concept, and need not be estimated."""
    return function.definition is COUNT and not function.arguments


def _spreads(functions: Sequence[Function]) -> tuple[Function, ...]:
    """What tells how far sums and means may be off, for each column that there are some of."""
    of = {f.arguments: f.types for f in functions if f.definition in (SUM, MEAN)}
    return tuple(
        Function(f"a{len(functions) + i}", SPREAD.name, arguments, types)
        for i, (arguments, types) in enumerate(of.items())
    )


def _represented(shed: Shed, functions: Sequence[Function]) -> Function:
    """One function for several, whose names are their places: its state knows no others."""
    given = {n: t for f in functions for n, t in zip(f.arguments, f.types, strict=True)}
    if any(f.definition.in_order for f in functions):
        given |= dict.fromkeys(ORDER, pa.int64())
    rule = Representation(tuple(functions), tuple(given), float(shed.rate), FEWEST)
    arguments = (PRIORITY, TUPLES, *given)
    types = (pa.uint64(), pa.int64(), *given.values())
    return Function(_STATE, REPRESENTED.name, arguments, types, (rule,))


def _scaled(function: Function, value: exp.Expression, factor: exp.Expression) -> exp.Expression:
    """A value of some of the tuples as one of all, of the same type: whole numbers are rounded."""
    type_ = function.result
    if pa.types.is_floating(type_):
        return exp.Mul(this=value, expression=_safe(factor))
    product: exp.Expression = exp.Mul(this=_double(value), expression=_safe(factor))
    if pa.types.is_integer(type_):
        product = exp.Round(this=product)
    return exp.cast(product, type_name(type_), dialect="spark")


def _double(value: exp.Expression) -> exp.Expression:
    return exp.cast(value, "DOUBLE", dialect="spark")


def _number(value: object) -> exp.Expression:
    return _double(exp.Literal.string(repr(float(value))))  # type: ignore[arg-type]


def _safe(factor: exp.Expression) -> exp.Expression:
    return exp.Paren(this=factor.copy())
