"""Aggregates over windows and the order of their rows, as logical nodes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import check_type, key_type, set_fields, types_of
from tidegate.query.name import (
    WINDOW,
    NamedExpr,
    Names,
    canonical,
    distinct_names,
    expression_text,
    named_text,
)
from tidegate.query.node.logical import Logical, clause_property
from tidegate.query.node.passthrough import Passthrough
from tidegate.query.ranking import Order, TopRanked
from tidegate.query.row_key import RowKey
from tidegate.query.window import Use, Window
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.clause.balance import Balance
    from tidegate.query.clause.clause import Clause
    from tidegate.query.clause.error import ErrorBound
    from tidegate.query.clause.pairs import ShedPairs
    from tidegate.query.clause.partitioner import PartitionedBy
    from tidegate.query.clause.shed import Shed
    from tidegate.query.node.node import Node


@dataclass(frozen=True, eq=False)
class Aggregate(Logical):
    """One row per window and group with tuples: window_start, window_end, keys, aggregates.

    A window of tuples starts at its oldest tuple and ends at its newest.
    """

    child: Node
    window: Window
    keys: tuple[NamedExpr, ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    clauses: tuple[Clause, ...] = ()
    """What is asked beside the answer; sorted, so that the order of writing makes no difference."""
    windowed = True
    stateful = True
    bound: ClassVar[ErrorBound | None] = clause_property("ERROR")
    balance: ClassVar[Balance | None] = clause_property("BALANCE")
    shed: ClassVar[Shed | None] = clause_property("SHED")
    pairs: ClassVar[ShedPairs | None] = clause_property("PAIRS")

    def __post_init__(self) -> None:
        names = self.child.names
        set_fields(
            self,
            clauses=tuple(sorted(self.clauses, key=_place)),
            keys=tuple((n, canonical(e, names, "GROUP BY")) for n, e in self.keys),
            aggregates=tuple((n, _canonical_call(c, names)) for n, c in self.aggregates),
        )
        for clause in self.clauses:
            clause.check(self)
        distinct_names(self.names, "SELECT")
        for _, expression in self.keys:
            check_type(self.child, expression, "GROUP BY")
        for _, call in self.aggregates:
            for argument in call.arguments:
                check_type(self.child, argument, str(call))
        with suppress(UnknownKernel):
            _ = self.schema

    @property
    def reach_us(self) -> int:
        return self.window.reach_us

    @property
    def summary(self) -> str:
        keys = ", ".join(named_text(name, expression) for name, expression in self.keys)
        calls = ", ".join(f"{name} = {call}" for name, call in self.aggregates)
        way = "".join(f", {clause.shown}" for clause in self.clauses if clause.shown)
        return f"aggregate [{self.window}] by {keys or 'nothing'}: {calls or 'groups only'}{way}"

    @cached_property
    def names(self) -> Names:
        return Names((*WINDOW, *(n for n, _ in self.keys), *self.result_names))

    def without(self, clause: Clause) -> Self:
        """The same aggregate without one of its clauses."""
        return replace(self, clauses=tuple(c for c in self.clauses if c is not clause))

    @property
    def partitioner(self) -> str | None:
        """The partitioner for its tuples; None takes that of the run."""
        found: PartitionedBy | None = self.clause("PARTITIONER")
        return None if found is None else found.partitioner

    @property
    def result_names(self) -> tuple[str, ...]:
        """The columns after the keys: aggregates, and the columns that clauses add."""
        ends = ("", *(end for clause in self.clauses for end in clause.beside))
        last = (name for clause in self.clauses for name, _ in clause.last)
        return (*(name + end for name, _ in self.aggregates for end in ends), *last)

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
            fields += [pa.field(name + end, result) for c in self.clauses for end in c.beside]
        fields += [pa.field(*added) for clause in self.clauses for added in clause.last]
        return pa.schema(fields)

    @cached_property
    def row_key(self) -> RowKey:
        early = any(clause.early for clause in self.clauses)
        return self.window.row_key([name for name, _ in self.keys], early)

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True, eq=False)
class Top(Passthrough):
    """The rows of each window in this order, at most `limit`; ties in key order."""

    child: Node
    order: tuple[Order, ...]
    limit: int | None
    ranked: TopRanked | None = None
    """Filters rows by their number in a partition, before the limit counts them."""

    def __post_init__(self) -> None:
        if not self.child.windowed:
            raise QueryError(
                "ORDER BY",
                "an unbounded stream has no last tuple to wait for, so its order cannot be changed",
                None,
                "Give the stream a window and an aggregate, or leave ORDER BY out.",
            )
        window = aggregate_of(self.child).window
        window.check(Use.ORDER, "ORDER BY and LIMIT", "Leave ORDER BY and LIMIT out.")
        if self.limit is not None and self.limit < 0:
            raise QueryError("LIMIT", "must not be negative", str(self.limit))
        names = self.child.names
        fixed = tuple(
            Order(canonical(o.expression, names, "ORDER BY"), o.descending, o.nulls_lead)
            for o in self.order
        )
        set_fields(self, order=fixed)
        if self.ranked is not None:
            ranked = self.ranked.over(lambda e: canonical(e, names, "PARTITION BY"))
            set_fields(self, ranked=ranked)
        for key in (*self.order, *(self.ranked.order if self.ranked else ())):
            check_type(self.child, key.expression, "ORDER BY", ordered=True)
        for expression in self.ranked.per if self.ranked else ():
            check_type(self.child, expression, "PARTITION BY", ordered=True)

    @cached_property
    def row_key(self) -> RowKey:
        every = self.limit is None and self.ranked is None
        return self.child.row_key if every else self.child.row_key.first()

    @property
    def summary(self) -> str:
        keys = ", ".join(key.text for key in self.order)
        text = f"order by {keys or 'key'}"
        text = text if self.limit is None else f"{text}, limit {self.limit} per window"
        return text if self.ranked is None else f"{text}, {self.ranked.said(expression_text)}"


def aggregate_of(node: Node) -> Aggregate:
    """The aggregate below a windowed node."""
    while not isinstance(node, Aggregate):
        (node,) = node.children
    return node


def _place(clause: Clause) -> tuple[bool, str]:
    """Sorts clauses that add no columns first."""
    return bool(clause.beside or clause.last), clause.word


def _canonical_call(call: AggregateCall, names: tuple[str, ...]) -> AggregateCall:
    return call.over([canonical(a, names, str(call)) for a in call.arguments])
