"""A join by equality that sheds, and the aggregate over its pairs, between WITH SHED and plans.

Both sides of such a join are thinned where they are read. Each pair has a column more, `kept`: the
probability with which it has come through. So every pair that is there stands for 1 / kept of
them, and counts, sums and means over pairs are made of sums of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.aggregate.functions.count import COUNT
from tidegate.operate.aggregate.functions.total import MEAN, SUM
from tidegate.query.aggregate import AggregateCall
from tidegate.query.name import NamedExpr, column, conjuncts
from tidegate.query.node import Aggregate, Branch, Filter, Join, Node, Project
from tidegate.query.option import KEPT, Shed
from tidegate.query.typing import UnknownKernel
from tidegate.query.window import Distance, TimeWindow
from tidegate.query.windowed import Pairs
from tidegate.schema import type_name

_PAIRS = "~pairs"


def join_below(node: Node) -> Join | None:
    """The join whose pairs a node passes on, chosen and renamed at most."""
    while isinstance(node, Filter | Branch | Project):
        node = node.child
    return node if isinstance(node, Join) else None


def sheds_sides(node: Aggregate) -> bool:
    """Whether an aggregate that is to shed can do so before a join: else it sheds its pairs."""
    join = join_below(node.child)
    if join is None or join.shed is not None or refused(join) is not None:
        return False
    if not isinstance(node.window, TimeWindow):
        return False
    if any(call.definition not in (COUNT, SUM, MEAN) for _, call in node.aggregates):
        return False
    try:
        return bool(node.schema)
    except UnknownKernel:
        return False


def refused(join: Join) -> tuple[str, str] | None:
    """Why the sides of a join cannot be thinned, and what it is; None where they can."""
    for window in (join.left_window, join.right_window):
        if not isinstance(window, Distance):
            return "sides with a window of time: others count the tuples that are shed", str(window)
    if not isinstance(join.predicate, exp.Expression):
        return _WANTED, "a function" if join.predicate is not None else "none"
    sides = [set(join.side_names(0)), set(join.side_names(1))]
    if any(_equates(c, sides) for c in conjuncts(join.predicate)):
        return None
    return _WANTED, join.summary.partition(" on ")[2]


_WANTED = "an equality of both sides in the condition of a join, whose values are the keys"


def thinned(node: Node, shed: Shed) -> Node:
    """A node that passes on the pairs of a join, whose sides are thinned; `kept` comes last."""
    if isinstance(node, Join):
        if node.shed is not None:
            raise QueryError(f"WITH {shed}", "a join sheds once", f"also {node.shed}")
        return replace(node, shed=shed)
    assert isinstance(node, Filter | Branch | Project)
    child = thinned(node.child, shed)
    if not isinstance(node, Project):
        return replace(node, child=child)
    if any(name.lower() == KEPT for name, _ in node.columns):
        raise kept_is_taken(f"WITH {shed}")
    return Project(child, (*node.columns, (KEPT, column(KEPT))))


def kept_is_taken(where: str) -> QueryError:
    """What to say where a query has a column of that name itself."""
    return QueryError(
        where,
        f"the name {KEPT} belongs to the column that says how much was kept",
        "a column of that name",
        "Give the column another name with AS.",
    )


def weighted(node: Aggregate, shed: Shed) -> Node:
    """An aggregate over the pairs of a join, estimated from those of thinned sides."""
    types = {field.name: field.type for field in node.schema}
    sums: dict[exp.Expression, str] = {}

    def total(of: exp.Expression) -> exp.Expression:
        """The sum over the pairs that are there, each for as many as it stands for."""
        return column(sums.setdefault(of, f"~{len(sums)}"))

    weight = exp.Div(this=exp.cast(exp.Literal.number(1), "DOUBLE"), expression=column(KEPT))
    pairs = total(weight)
    estimates = [(n, _estimate(call, weight, total, types[n])) for n, call in node.aggregates]
    counted = AggregateCall(COUNT.name)
    child = replace(
        node,
        child=thinned(node.child, shed),
        aggregates=(
            (_PAIRS, counted),
            *((n, AggregateCall(SUM.name, (e,))) for e, n in sums.items()),
        ),
        pairs=Pairs(shed, _PAIRS, pairs.name),
    )
    share = exp.Div(this=exp.cast(column(_PAIRS), "DOUBLE"), expression=pairs)
    keys: list[NamedExpr] = [(n, column(n)) for n, _ in node.keys]
    return Project(child, (*keys, *estimates, (KEPT, share)))


def _estimate(
    call: AggregateCall,
    weight: exp.Expression,
    total: Callable[[exp.Expression], exp.Expression],
    type_: pa.DataType,
) -> exp.Expression:
    """An aggregate of all pairs, over sums of those that are there; of the type it has exactly."""
    if not call.arguments:
        return _typed(total(weight), type_)
    (argument,) = call.arguments
    there = exp.Not(this=exp.Is(this=argument.copy(), expression=exp.null()))
    counted = exp.If(this=there, true=weight.copy())
    if call.definition is COUNT:
        none = _double(exp.Literal.number(0))
        return _typed(exp.Coalesce(this=total(counted), expressions=[none]), type_)
    value = total(exp.Div(this=_double(argument.copy()), expression=column(KEPT)))
    if call.definition is MEAN:
        value = exp.Div(this=value, expression=total(counted))
    return _typed(value, type_)


def _typed(value: exp.Expression, type_: pa.DataType) -> exp.Expression:
    """A double as the type of the aggregate: whole numbers are rounded."""
    if pa.types.is_floating(type_):
        return value
    if pa.types.is_integer(type_):
        value = exp.Round(this=value)
    return exp.cast(value, type_name(type_), dialect="spark")


def _double(value: exp.Expression) -> exp.Expression:
    return exp.cast(value, "DOUBLE", dialect="spark")


def _equates(condition: exp.Expression, sides: Sequence[Collection[str]]) -> bool:
    """Whether a condition says that a value of one side is one of the other."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return False
    of = [{c.name for c in e.find_all(exp.Column)} for e in (condition.this, condition.expression)]
    if not all(of):
        return False
    here, there = ([set(names) <= set(side) for side in sides] for names in of)
    return (here[0] and there[1]) or (here[1] and there[0])
