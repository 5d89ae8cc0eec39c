"""The logical plan: immutable nodes that both SQL and Python build and that lowering reads.

A node's `schema` lists its columns: first the implicit ones (`ts`, or after a window `window_start,
window_end`), then the others. `names` are the same columns without types. A node may read the rows
of any other node. A `stateful` node keeps something from tuple to tuple.

Building a node checks it, and rewrites its expressions to the exact column names of its child.
Types that only Spark knows are not needed for that: `schema` then raises UnknownKernel, and
lowering asks Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.aim import Aim
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import check_type, set_fields, types_of, union_type
from tidegate.query.definition import StreamDef
from tidegate.query.name import (
    EVENT_TIME,
    WINDOW,
    NamedExpr,
    Names,
    canonical,
    column,
    distinct_names,
    expression_text,
    is_column,
    named_text,
    result_name,
)
from tidegate.query.node.aggregation import Aggregate, Top, aggregate_of
from tidegate.query.node.asof import AsOf
from tidegate.query.node.dedup import Dedup
from tidegate.query.node.join import Join
from tidegate.query.node.logical import Logical
from tidegate.query.node.over import Lead, Over
from tidegate.query.node.passthrough import Passthrough
from tidegate.query.node.process import ProcessNode
from tidegate.query.node.table_join import TableJoin
from tidegate.query.node.unnest import Unnest
from tidegate.query.ranking import Order
from tidegate.query.row_key import RowKey
from tidegate.schema import TIME


@dataclass(frozen=True, eq=False)
class Input(Logical):
    """The tuples of one stream, as its sources deliver them."""

    stream: StreamDef
    windowed = False
    stateful = False

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def names(self) -> Names:
        return Names(self.schema.names)

    @cached_property
    def schema(self) -> pa.Schema:
        raw = self.stream.schema
        if self.shadowed:
            return raw
        # A time column called TS is the event time: SQL does not tell cases apart.
        time = self.stream.time if self.stream.time.lower() == EVENT_TIME else EVENT_TIME
        rest = [f for f in raw if f.name != time]
        return pa.schema([pa.field(EVENT_TIME, TIME), *rest])

    @property
    def shadowed(self) -> bool:
        """Whether a column other than the stream's time has the name of the event time."""
        return EVENT_TIME in self.stream.schema.names and self.stream.time != EVENT_TIME

    @property
    def summary(self) -> str:
        """One line for people; every node has it."""
        return f"stream {self.stream.name}"

    @property
    def event_names(self) -> frozenset[str]:
        """The columns that hold the event time, under whatever name."""
        return frozenset({self.stream.time} if self.shadowed else {self.stream.time, EVENT_TIME})


@dataclass(frozen=True, eq=False)
class Filter(Passthrough):
    """The rows for which the predicate is true; WHERE before a window, HAVING after one."""

    child: Node
    predicate: exp.Expression

    def __post_init__(self) -> None:
        where = "HAVING" if self.child.windowed else "WHERE"
        set_fields(self, predicate=canonical(self.predicate, self.child.names, where))
        check_type(self.child, self.predicate, where, predicate=True)

    @property
    def summary(self) -> str:
        return f"filter {expression_text(self.predicate)}"

    @cached_property
    def row_key(self) -> RowKey:
        return self.child.row_key.kept([self.predicate])


@dataclass(frozen=True, eq=False)
class Branch(Passthrough):
    """One output of a split: the rows whose first true condition has the number `index`.

    `index == len(conditions)` is the rest. A condition that is NULL does not match.
    """

    child: Node
    conditions: tuple[exp.Expression, ...]
    index: int

    def __post_init__(self) -> None:
        if not self.conditions or not 0 <= self.index <= len(self.conditions):
            raise QueryError("split", "needs at least one condition", str(len(self.conditions)))
        names = self.child.names
        set_fields(self, conditions=tuple(canonical(c, names, "split") for c in self.conditions))
        for condition in self.conditions:
            check_type(self.child, condition, "split", predicate=True)

    @property
    def summary(self) -> str:
        outputs = len(self.conditions) + 1
        return f"split {self.index + 1} of {outputs}: {expression_text(self.predicate)}"

    @cached_property
    def row_key(self) -> RowKey:
        return self.child.row_key.kept(self.conditions)

    @property
    def predicate(self) -> exp.Expression:
        """The condition for this output alone; it is never NULL."""
        held = [exp.Coalesce(this=c.copy(), expressions=[exp.false()]) for c in self.conditions]
        parts: list[exp.Expression] = [exp.Not(this=h) for h in held[: self.index]]
        parts += held[self.index : self.index + 1]
        return reduce(lambda left, right: exp.And(this=left, expression=right), parts)


@dataclass(frozen=True, eq=False)
class Project(Passthrough):
    """Named expressions over the child's columns; the implicit columns are always kept."""

    child: Node
    columns: tuple[NamedExpr, ...]

    def __post_init__(self) -> None:
        names = self.child.names
        set_fields(self, columns=tuple((n, canonical(e, names, "SELECT")) for n, e in self.columns))
        distinct_names([*self.implicit, *(n for n, _ in self.columns)], "SELECT")
        for _, expression in self.columns:
            check_type(self.child, expression, "SELECT")

    @property
    def summary(self) -> str:
        named = (named_text(name, expression) for name, expression in self.columns)
        return f"select {', '.join(named) or 'nothing more'}"

    @cached_property
    def row_key(self) -> RowKey:
        implicit: list[NamedExpr] = [(name, column(name)) for name in self.implicit]
        return self.child.row_key.shown([*implicit, *self.columns])

    @property
    def implicit(self) -> tuple[str, ...]:
        return WINDOW if self.child.windowed else (EVENT_TIME,)

    @cached_property
    def names(self) -> Names:
        return Names((*self.implicit, *(n for n, _ in self.columns)))

    @cached_property
    def schema(self) -> pa.Schema:
        types = types_of(self.child)
        named = [pa.field(n, bind(e, types, "SELECT").type) for n, e in self.columns]
        return pa.schema([*(pa.field(n, TIME) for n in self.implicit), *named])

    @cached_property
    def event_names(self) -> frozenset[str]:
        held = self.child.event_names
        return frozenset({EVENT_TIME, *(n for n, e in self.columns if is_column(e, held))})


@dataclass(frozen=True, eq=False)
class Union(Logical):
    """The tuples of several streams; columns match by position and are named as in the first.

    Rows of windows become plain tuples, each at its event time and without its window.
    """

    inputs: tuple[Node, ...]
    windowed = False
    stateful = False

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise QueryError("UNION ALL", "needs two streams", str(len(self.inputs)))
        widths = [len(data_names(c)) for c in self.inputs]
        if len(set(widths)) > 1:
            raise QueryError(
                "UNION ALL",
                "every side must have the same number of columns",
                " and ".join(str(w) for w in widths),
                "Add a column, or leave one out.",
            )
        if EVENT_TIME in self.names[1:]:
            raise QueryError(
                "UNION ALL",
                f"the name {EVENT_TIME} belongs to the event time",
                "a column of that name",
                "Give the column another name with AS.",
            )
        with suppress(UnknownKernel):
            _ = self.schema

    @property
    def summary(self) -> str:
        return "union all"

    @cached_property
    def own_time(self) -> bool:
        return any(child.own_time for child in self.inputs)

    @property
    def children(self) -> tuple[Node, ...]:
        return self.inputs

    @cached_property
    def names(self) -> Names:
        return Names((EVENT_TIME, *data_names(self.inputs[0])))

    @cached_property
    def schema(self) -> pa.Schema:
        sides = [[types_of(c)[n] for n in data_names(c)] for c in self.inputs]
        named = zip(data_names(self.inputs[0]), zip(*sides, strict=True), strict=True)
        fields = [pa.field(name, union_type(types, name)) for name, types in named]
        return pa.schema([pa.field(EVENT_TIME, TIME), *fields])

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset({EVENT_TIME})


Node = (
    Input
    | Filter
    | Branch
    | Project
    | Union
    | Unnest
    | Join
    | AsOf
    | TableJoin
    | ProcessNode
    | Aggregate
    | Top
    | Aim
    | Dedup
    | Over
    | Lead
)


def project(child: Node, columns: Iterable[NamedExpr]) -> Node:
    """A Project without the implicit columns, which are always kept; the child if nothing changes.

    The implicit columns may be listed under their own names; nothing else may take these names.
    """
    implicit = WINDOW if child.windowed else (EVENT_TIME,)
    kept: list[NamedExpr] = []
    for name, expression in columns:
        plain = canonical(expression, child.names, "SELECT")
        if name.lower() not in implicit:
            kept.append((name, plain))
            continue
        same = (
            is_column(plain, {name.lower()})
            if child.windowed
            else is_column(plain, child.event_names)
        )
        if not same:
            raise QueryError(
                "SELECT",
                f"the name {name} belongs to the {'window' if child.windowed else 'event time'}",
                plain.sql(dialect="spark"),
                "Give the column another name with AS.",
            )
    unchanged = child.windowed and tuple(kept) == tuple((n, column(n)) for n in data_names(child))
    return child if unchanged else Project(child, tuple(kept))


def data_names(node: Node) -> tuple[str, ...]:
    """The columns of a node without the implicit ones."""
    # These nodes have the columns of their child, so a shadowed input below them decides: there the
    # column `ts` is data.
    base = node
    while isinstance(base, Filter | Branch) or (isinstance(base, TableJoin) and base.filters):
        base = base.child
    if isinstance(base, Input) and base.shadowed:
        return node.names
    implicit = WINDOW if node.windowed else (EVENT_TIME,)
    return tuple(n for n in node.names if n not in implicit)


def result_columns(node: Node) -> list[tuple[str, str]]:
    """What * stands for, without implicit columns: pairs of names, in a result and in the node."""
    names = data_names(node)
    taken = set(WINDOW if node.windowed else (EVENT_TIME,))
    found = []
    for name in names:
        shown = result_name(name, names, taken)
        taken.add(shown.lower())
        found.append((shown, name))
    return found


__all__ = [
    "Aggregate",
    "AsOf",
    "Branch",
    "Dedup",
    "Filter",
    "Input",
    "Join",
    "Lead",
    "Node",
    "Order",
    "Over",
    "ProcessNode",
    "Project",
    "StreamDef",
    "TableJoin",
    "Top",
    "Union",
    "aggregate_of",
    "check_type",
    "data_names",
    "project",
    "types_of",
]
