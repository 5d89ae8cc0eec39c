"""Aggregates over windows and the order of their rows, as logical nodes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.bound import EXACT, check_balance, check_bound, interval_names
from tidegate.query.check import check_type, key_type, set_fields, types_of
from tidegate.query.logical import Logical
from tidegate.query.name import (
    WINDOW,
    NamedExpr,
    Names,
    canonical,
    distinct_names,
    expression_text,
    named_text,
)
from tidegate.query.option import KEPT, Balance, ErrorBound, Shed
from tidegate.query.passthrough import Passthrough
from tidegate.query.typing import UnknownKernel, bind
from tidegate.query.window import TupleWindow, Window
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.node import Node


@dataclass(frozen=True)
class Pairs:
    """What the join below an aggregate sheds, and which aggregates say how much that is.

    `counted` has the pairs that are there, `estimated` how many there would be. `asked` is the
    aggregate as it was before these took its place.
    """

    shed: Shed
    counted: str
    estimated: str
    asked: Aggregate
    bound: ErrorBound | None = None


@dataclass(frozen=True, eq=False)
class Aggregate(Logical):
    """One row per window and group that has tuples: window_start, window_end, keys, aggregates.

    The ends of a window of tuples are the times of its oldest and of its newest tuple.
    """

    child: Node
    window: Window
    keys: tuple[NamedExpr, ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    partitioner: str | None = None
    """Who chooses where its tuples go; None leaves it to the options of the run."""
    bound: ErrorBound | None = None
    """How far its results may be from the exact ones; with one it has columns that say so."""
    shed: Shed | None = None
    """Which tuples it drops; the last column then says how many of a group it has kept."""
    pairs: Pairs | None = None
    """Where it is over a join that sheds for it."""
    balance: Balance | None = None
    """How far off rows may be whose groups are trimmed; they have the columns of a bound."""
    windowed = True
    stateful = True

    def __post_init__(self) -> None:
        names = self.child.names
        set_fields(
            self,
            keys=tuple((n, canonical(e, names, "GROUP BY")) for n, e in self.keys),
            aggregates=tuple((n, _canonical_call(c, names)) for n, c in self.aggregates),
        )
        if self.bound is not None:
            check_bound(self.bound, self.window, [call for _, call in self.aggregates])
        if self.balance is not None:
            calls = [call for _, call in self.aggregates]
            check_balance(self.balance, self.window, [n for n, _ in self.keys], calls)
        distinct_names(self.names, "SELECT")
        for _, expression in self.keys:
            check_type(self.child, expression, "GROUP BY")
        for _, call in self.aggregates:
            for argument in call.arguments:
                check_type(self.child, argument, str(call))
        with suppress(UnknownKernel):
            _ = self.schema

    @property
    def summary(self) -> str:
        keys = ", ".join(named_text(name, expression) for name, expression in self.keys)
        calls = ", ".join(f"{name} = {call}" for name, call in self.aggregates)
        way = f", partitioner {self.partitioner}" if self.partitioner else ""
        way += f", {self.bound}" if self.bound else ""
        way += f", {self.shed}" if self.shed else ""
        way += f", {self.balance}" if self.balance else ""
        return f"aggregate [{self.window}] by {keys or 'nothing'}: {calls or 'groups only'}{way}"

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    @cached_property
    def names(self) -> Names:
        return Names((*WINDOW, *(n for n, _ in self.keys), *self.result_names))

    @property
    def sheds(self) -> Shed | None:
        """What is dropped for it, by itself or by the join below it."""
        return self.shed if self.pairs is None else self.pairs.shed

    @property
    def has_ends(self) -> bool:
        """Whether its rows say between which ends the exact values are, and whether they are so."""
        return self.bound is not None or self.balance is not None

    @property
    def result_names(self) -> tuple[str, ...]:
        """The columns after the keys: aggregates, and what a bound or shedding says of them."""
        names = [name for name, _ in self.aggregates]
        if not self.has_ends:
            return (*names, KEPT) if self.shed else tuple(names)
        return (*(own for name in names for own in (name, *interval_names(name))), EXACT)

    @cached_property
    def schema(self) -> pa.Schema:
        types = types_of(self.child)
        fields = [pa.field(n, TIME) for n in WINDOW]
        for name, expression in self.keys:
            fields.append(pa.field(name, key_type(bind(expression, types, "GROUP BY").type, name)))
        for name, call in self.aggregates:
            given = [bind(a, types, str(call)).type for a in call.arguments]
            ready = call.coerced(given)
            taken = [bind(a, types, str(call)).type for a in ready.arguments]
            columns = tuple(f"x{i}" for i in range(len(taken)))
            result = ready.function(name, columns, taken).result
            fields.append(pa.field(name, result))
            if self.has_ends:
                fields += [pa.field(end, result) for end in interval_names(name)]
        fields += [] if not self.has_ends else [pa.field(EXACT, pa.bool_())]
        fields += [] if self.shed is None else [pa.field(KEPT, pa.float64())]
        return pa.schema(fields)

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True)
class Order:
    """One key of ORDER BY; without NULLS FIRST/LAST, NULL is the smallest value, as in Spark."""

    expression: exp.Expression
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def nulls_lead(self) -> bool:
        """Where NULL goes, decided."""
        return not self.descending if self.nulls_first is None else self.nulls_first

    @property
    def text(self) -> str:
        """The key for people; where NULL goes is said where it is not as usual."""
        way = " DESC" if self.descending else ""
        unusual = self.nulls_lead == self.descending
        nulls = f" NULLS {'FIRST' if self.nulls_lead else 'LAST'}" if unusual else ""
        return f"{expression_text(self.expression)}{way}{nulls}"


@dataclass(frozen=True, eq=False)
class Top(Passthrough):
    """The rows of each window in this order, at most `limit` of them; ties in order of the key."""

    child: Node
    order: tuple[Order, ...]
    limit: int | None

    def __post_init__(self) -> None:
        if not self.child.windowed:
            raise QueryError(
                "ORDER BY",
                "an unbounded stream has no last tuple to wait for, so its order cannot be changed",
                None,
                "Give the stream a window and an aggregate, or leave ORDER BY out.",
            )
        window = aggregate_of(self.child).window
        if isinstance(window, TupleWindow):
            raise QueryError(
                "ORDER BY and LIMIT",
                "a window of tuples gives one row, so there is nothing to order or to leave out",
                f"[{window}]",
                "Leave ORDER BY and LIMIT out.",
            )
        if self.limit is not None and self.limit < 0:
            raise QueryError("LIMIT", "must not be negative", str(self.limit))
        names = self.child.names
        fixed = tuple(
            Order(canonical(o.expression, names, "ORDER BY"), o.descending, o.nulls_lead)
            for o in self.order
        )
        set_fields(self, order=fixed)
        for key in self.order:
            check_type(self.child, key.expression, "ORDER BY", ordered=True)

    @property
    def summary(self) -> str:
        keys = ", ".join(key.text for key in self.order)
        text = f"order by {keys or 'key'}"
        return text if self.limit is None else f"{text}, limit {self.limit} per window"


def aggregate_of(node: Node) -> Aggregate:
    """The aggregate whose windows the rows of a windowed node are."""
    while not isinstance(node, Aggregate):
        (node,) = node.children
    return node


def partitioned(node: Node, partitioner: str, where: str) -> Node:
    """A query whose newest aggregate has this partitioner."""
    if isinstance(node, Aggregate):
        if node.partitioner not in (None, partitioner):
            raise QueryError(
                where,
                "an aggregate has one partitioner",
                f"also {node.partitioner}",
                "Leave one of them out.",
            )
        return replace(node, partitioner=partitioner)
    if not node.windowed or len(node.children) != 1:
        raise QueryError(
            where,
            "is for an aggregate",
            "a query without one",
            "Write it after the SELECT that has the aggregate.",
        )
    (child,) = node.children
    return replace(node, child=partitioned(child, partitioner, where))  # type: ignore[arg-type]


def _canonical_call(call: AggregateCall, names: tuple[str, ...]) -> AggregateCall:
    return call.over([canonical(a, names, str(call)) for a in call.arguments])
