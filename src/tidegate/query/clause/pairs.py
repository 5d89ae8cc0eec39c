"""WITH SHED over a join by equality: samples both sides and estimates aggregates over the pairs.

Both sides of such a join are sampled where they are read. Each pair gets a column `kept`: the
probability that this pair came through. So each pair stands for 1 / kept pairs, and counts, sums
and means over all pairs are built from sums of 1 / kept and of value / kept.

With an error bound, the variance of such a sum is estimated too. Let tuple i of one side be kept
with probability p_i and tuple j of the other with q_j, all independently. Let A_i be the estimate
of what i contributes and B_j that of what j contributes. Then the sum of (1 - p_i) A_i^2 / p_i^2
plus the same for j estimates the variance. It errs on the large side, by the part that both draws
share.

We need not know which pairs belong to one tuple: every tuple has SIGNS random signs, and the sum
over pairs of (s_i sqrt(1 - p_i) + s_j sqrt(1 - q_j)) value / kept has a square whose mean over the
signs is this variance. So SIGNS ordinary sums estimate it, with a chi-square distribution of SIGNS
degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from sqlglot import exp

from tidegate.approx.student import deviate
from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.binder import UnknownKernel
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.column import EXACT, KEPT, interval_names
from tidegate.query.name import (
    NamedExpr,
    column,
    conjuncts,
    expression_text,
    refuse_taken,
    substitute,
)
from tidegate.query.node.join import DRAWN, SIGNS
from tidegate.query.node.node import Aggregate, Branch, Filter, Join, Node, Project
from tidegate.query.window import Use
from tidegate.schema import type_name

if TYPE_CHECKING:
    from tidegate.query.clause.error import ErrorBound
    from tidegate.query.clause.shed import Shed

COUNT, SUM, MEAN, MIN = "count", "sum", "mean", "min"
"""The kinds of aggregates that can be estimated over pairs, and those used to build the
estimates.
"""

_PAIRS, _LEAST = "#pairs", "#least"
"""Columns between the aggregate and the estimates. They may cross from one subquery to another,
where names that begin with `~` would be taken for an order and dropped.
"""


@dataclass(frozen=True)
class ShedPairs(Clause):
    """On an aggregate over a shedding join: which columns say how much was shed.

    `counted` is the number of pairs that came through, `estimated` the estimated number of all
    pairs. `asked` is the user's aggregate, which these sums replace. Users do not write this
    clause: WITH SHED becomes it, and WITH ERROR after that adds `bound`.
    """

    word: ClassVar = "PAIRS"
    sheds: ClassVar = True

    shed: Shed
    counted: str
    estimated: str
    asked: Aggregate
    bound: ErrorBound | None = None

    def __str__(self) -> str:
        return str(self.shed)

    @property
    def shown(self) -> str:
        return ""  # the join below says it


def pairs_below(node: Node) -> ShedPairs | None:
    """The ShedPairs of the aggregate directly below a node that computes the estimates; else None.

    Its `asked` includes the clauses that were put on the aggregate since.
    """
    below = node.children[0] if node.windowed and len(node.children) == 1 else None
    if not isinstance(below, Aggregate) or (pairs := below.pairs) is None:
        return None
    return replace(pairs, asked=replace(pairs.asked, clauses=below.without(pairs).clauses))


def join_below(node: Node) -> Join | None:
    """The join below a node, if only filters and select lists are between; else None."""
    while isinstance(node, Filter | Branch | Project):
        node = node.child
    return node if isinstance(node, Join) else None


def sheds_sides(node: Aggregate) -> bool:
    """Whether WITH SHED can sample the sides of a join; if not, it sheds the pairs."""
    join = join_below(node.child)
    if join is None or join.shed is not None or refused(join) is not None:
        return False
    if not node.window.allows(Use.SHED):
        return False
    if any(call.kind not in (COUNT, SUM, MEAN) for _, call in node.aggregates):
        return False
    try:
        return bool(node.schema)
    except UnknownKernel:
        return False


def refused(join: Join) -> tuple[str, str] | None:
    """Why a join's sides cannot be sampled (requirement, actual); None if they can."""
    if join.kind.tracked:
        return "an inner join, whose pairs can be shed", join.kind.summary.upper()
    for window in (join.left_window, join.right_window):
        if window.no_shed is not None:
            return window.no_shed, str(window)
    if not isinstance(join.predicate, exp.Expression):
        return _WANTED, "a function" if join.predicate is not None else "none"
    sides = [set(join.side_names(0)), set(join.side_names(1))]
    if any(_equates(c, sides) for c in conjuncts(join.predicate)):
        return None
    return _WANTED, join.summary.partition(" on ")[2]


_WANTED = "an equality of both sides in the condition of a join, whose values are the keys"


def thinned(node: Node, shed: Shed, bound: ErrorBound | None = None) -> Node:
    """The node above a join, with the join's sides sampled and `kept` as the last column."""
    if isinstance(node, Join):
        if node.shed is not None:
            raise QueryError(f"WITH {shed}", "a join sheds once", f"also {node.shed}")
        return replace(node, clauses=(shed,) if bound is None else (shed, bound))
    assert isinstance(node, Filter | Branch | Project)
    child = thinned(node.child, shed, bound)
    if not isinstance(node, Project):
        return replace(node, child=child)
    refuse_taken((name for name, _ in node.columns), (KEPT,), f"WITH {shed}")
    drawn = DRAWN[:1] if bound is None else DRAWN
    return Project(child, (*node.columns, *((name, column(name)) for name in drawn)))


def weighted(node: Aggregate, shed: Shed, bound: ErrorBound | None = None) -> Project:
    """An aggregate over the pairs of a join, estimated from the pairs of sampled sides.

    With a bound, intervals follow the estimates, and the last column says whether a row is exact.
    """
    types = {field.name: field.type for field in node.schema}
    sums = _Sums({})
    pairs = sums.total(_WEIGHT)
    columns: list[NamedExpr] = [(n, column(n)) for n, _ in node.keys]
    exact = exp.EQ(this=column(_LEAST), expression=_double(exp.Literal.number(1)))
    for name, call in node.aggregates:
        estimate = _estimate(call, sums)
        columns.append((name, _typed(estimate.value, types[name])))
        if bound is not None:
            half = estimate.half(bound)
            named = zip(interval_names(name), (exp.Sub, exp.Add), strict=True)
            for own, way in named:
                end = way(this=estimate.value.copy(), expression=exp.Paren(this=half.copy()))
                # If the least `kept` of a group is 1, nothing was dropped: the estimate is exact.
                told = exp.If(this=exact.copy(), true=estimate.value.copy(), false=end)
                columns.append((own, _typed(told, types[name])))
    share = exp.Div(this=_double(column(_PAIRS)), expression=pairs)
    columns.append((KEPT, share))
    calls = [(_PAIRS, AggregateCall(COUNT))]
    calls += [(n, AggregateCall(SUM, (e,))) for e, n in sums.names.items()]
    if bound is not None:
        columns.append((EXACT, exact))
        calls.append((_LEAST, AggregateCall(MIN, (column(KEPT),))))
    child = replace(
        node,
        child=thinned(node.child, shed, bound),
        aggregates=tuple(calls),
        clauses=(*node.clauses, ShedPairs(shed, _PAIRS, pairs.name, node, bound)),
    )
    return Project(child, tuple(columns))


def bounded_pairs(pairs: ShedPairs, bound: ErrorBound) -> Project:
    """Adds an error bound to an aggregate over the pairs of a shedding join."""
    where = bound.where
    if pairs.bound is not None:
        raise QueryError(where, "an aggregate has one error bound", f"also {pairs.bound}")
    if not pairs.shed.by_concept:
        raise QueryError(
            where,
            "over a join that sheds needs a number of tuples of each key that are kept",
            str(pairs.shed),
            "Write BY CONCEPT, or leave one of the clauses out.",
        )
    if bound.metric != type(bound).metric or bound.budget_rows is not None:
        rows, metric = bound.budget_rows, f"BY {bound.metric.upper()}"
        raise QueryError(
            where,
            "over a join that sheds, holds for each row, and how many tuples are kept follows "
            "from it",
            metric if rows is None else f"BUDGET {rows} ROWS",
            "Write ERROR and CONFIDENCE alone.",
        )
    _check_by_key(pairs.asked, where)
    ends = [end for name, _ in pairs.asked.aggregates for end in interval_names(name)]
    refuse_taken(pairs.asked.names, (*ends, EXACT), where)
    return weighted(pairs.asked, pairs.shed, bound)


def _check_by_key(node: Aggregate, where: str) -> None:
    """Raises for groups and conditions that the first tuples of a key cannot represent.

    Sampling keeps a number of tuples of every join key. If a group is not a join key, all its
    tuples may be among the dropped ones, and nothing would show it.
    """
    join, columns, conditions = _down(node.child)
    sides = [set(join.side_names(0)), set(join.side_names(1))]
    assert isinstance(join.predicate, exp.Expression)
    conditions += conjuncts(join.predicate)
    equal = [c for c in conditions if _equates(c, sides)]
    beside = [c for c in conditions if c not in equal and not _of_one_side(c, sides)]
    values = [part for c in equal for part in (c.this, c.expression)]
    groups = [e for _, e in node.keys if substitute(e, columns) not in values]
    if beside or groups:
        raise QueryError(
            where,
            "over a join that sheds is for groups by the values that the join compares, or for "
            "none, and conditions of one side",
            expression_text((groups or beside)[0]),
            "Leave it out, or leave out WITH SHED: pairs are sampled then.",
        )


def _down(node: Node) -> tuple[Join, dict[str, exp.Expression], list[exp.Expression]]:
    """The join below a node, the node's columns over the join's, and conditions between."""
    if isinstance(node, Join):
        return node, {}, []
    assert isinstance(node, Filter | Branch | Project)
    join, columns, conditions = _down(node.child)
    if isinstance(node, Project):
        return join, {n: substitute(e, columns) for n, e in node.columns}, conditions
    return join, columns, [*conditions, *conjuncts(substitute(node.predicate, columns))]


def _of_one_side(condition: exp.Expression, sides: Sequence[Collection[str]]) -> bool:
    """Whether a condition reads columns of one side only."""
    names = {c.name for c in condition.find_all(exp.Column)}
    return any(names <= set(side) for side in sides)


@dataclass(frozen=True)
class _Sums:
    """Sums over the pairs that came through: the column name of each summed expression."""

    names: dict[exp.Expression, str]

    def total(self, of: exp.Expression) -> exp.Expression:
        return column(self.names.setdefault(of, f"#{len(self.names)}"))

    def signed(self, of: exp.Expression, sign: int) -> exp.Expression:
        """The sum with random signs; its square estimates the variance of the sum without them."""
        chance = column(DRAWN[1 + sign])
        return self.total(exp.Mul(this=chance, expression=exp.Paren(this=of.copy())))


@dataclass(frozen=True)
class _Estimate:
    """The estimate of an aggregate over all pairs, a double, and its error for each sign."""

    value: exp.Expression
    errors: Callable[[int], exp.Expression]

    def half(self, bound: ErrorBound) -> exp.Expression:
        """Half the interval: from the estimated variance, and at least the error allowed."""
        total: exp.Expression = _number(0.0)
        for sign in range(SIGNS):
            square = exp.Pow(this=self.errors(sign), expression=_number(2.0))
            total = exp.Add(this=total, expression=square)
        root = exp.Sqrt(this=exp.Div(this=exp.Paren(this=total), expression=_number(SIGNS)))
        width = float(deviate(1 - bound.confidence, SIGNS))
        told = exp.Mul(this=root, expression=_number(width))
        allowed = exp.Mul(
            this=exp.Abs(this=self.value.copy()), expression=_number(bound.allowed.size)
        )
        return exp.Greatest(this=told, expressions=[allowed])


def _estimate(call: AggregateCall, sums: _Sums) -> _Estimate:
    """The estimate of an aggregate over all pairs, from sums over those that came through."""
    if not call.arguments:
        return _Estimate(sums.total(_WEIGHT), lambda i: sums.signed(_WEIGHT, i))
    (argument,) = call.arguments
    there = exp.Not(this=exp.Is(this=argument.copy(), expression=exp.null()))
    counted = exp.If(this=there, true=_WEIGHT.copy())
    number, none = sums.total(counted) if call.kind != SUM else None, _number(0.0)
    if call.kind == COUNT:
        assert number is not None
        value: exp.Expression = exp.Coalesce(this=number, expressions=[none])
        return _Estimate(value, lambda i: sums.signed(counted, i))
    of = exp.Div(this=_double(argument.copy()), expression=column(KEPT))
    total = sums.total(of)
    if number is None:
        return _Estimate(total, lambda i: sums.signed(of, i))
    mean = exp.Div(this=total, expression=number)

    def error(sign: int) -> exp.Expression:
        """Of a ratio: the sum's error minus the mean times the count's error, per count."""
        beside = exp.Mul(this=exp.Paren(this=mean.copy()), expression=sums.signed(counted, sign))
        rest = exp.Sub(this=sums.signed(of, sign), expression=beside)
        return exp.Paren(this=exp.Div(this=exp.Paren(this=rest), expression=number.copy()))

    return _Estimate(exp.Paren(this=mean), error)


def _typed(value: exp.Expression, type_: pa.DataType) -> exp.Expression:
    """A double in the aggregate's type; integers are rounded first."""
    if pa.types.is_floating(type_):
        return value
    if pa.types.is_integer(type_):
        value = exp.Round(this=value)
    return exp.cast(value, type_name(type_), dialect="spark")


def _number(value: float) -> exp.Expression:
    return _double(exp.Literal.string(repr(float(value))))


def _double(value: exp.Expression) -> exp.Expression:
    return exp.cast(value, "DOUBLE", dialect="spark")


_WEIGHT = exp.Div(this=_number(1.0), expression=column(KEPT))
"""How many pairs a pair that came through stands for."""


def _equates(condition: exp.Expression, sides: Sequence[Collection[str]]) -> bool:
    """Whether a condition equates a value of one side with a value of the other."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return False
    of = [{c.name for c in e.find_all(exp.Column)} for e in (condition.this, condition.expression)]
    if not all(of):
        return False
    here, there = ([set(names) <= set(side) for side in sides] for names in of)
    return (here[0] and there[1]) or (here[1] and there[0])
