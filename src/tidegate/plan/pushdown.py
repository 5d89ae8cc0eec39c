"""Turns the stateless nodes above an input into expressions over the columns of that input.

An input is a stream, or the rows of another subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.batch import DECIDED
from tidegate.errors import UnavailableError
from tidegate.plan.physical import Edge
from tidegate.plan.table.leaf import TableLeaf, table_leaf
from tidegate.query.check import union_type
from tidegate.query.definition import StreamDef
from tidegate.query.name import EVENT_TIME, WINDOW, SideName, column, conjuncts, substitute
from tidegate.query.node.node import (
    Branch,
    Filter,
    Input,
    Node,
    Project,
    TableJoin,
    Top,
    Union,
    data_names,
)
from tidegate.schema import type_name


@dataclass(frozen=True)
class EarlierRows:
    """The rows of an earlier subquery as an input; `schema` is what its port emits."""

    name: str
    edge: Edge
    schema: pa.Schema
    time: str
    offset_us: int

    @property
    def event_time(self) -> exp.Expression:
        """The event time of a row, as an expression over its columns."""
        at = column(self.time)
        if not self.offset_us:
            return at
        step = exp.Interval(
            this=exp.Literal.string(str(-self.offset_us)), unit=exp.Var(this="MICROSECOND")
        )
        return exp.Sub(this=at, expression=step)

    @property
    def shown_time(self) -> exp.Expression:
        """The time that a row shows as `ts`: its event time, or a column of its own."""
        return column(EVENT_TIME) if self.time == DECIDED else self.event_time


Origin = StreamDef | EarlierRows

Results = Callable[[Node], EarlierRows | None]
"""Returns the rows of a node if another subquery emits them; else None."""


@dataclass(frozen=True)
class Leaf:
    """One input with all stateless work above it: conditions, and an expression per column.

    Its tuples are joined to `tables` in this order, then `where` is evaluated.
    """

    origin: Origin
    where: tuple[exp.Expression, ...]
    columns: Mapping[str, exp.Expression]
    tables: tuple[TableLeaf, ...] = ()

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The columns that expressions may use: those of the input and of the tables."""
        found = {f.name: f.type for f in self.origin.schema}
        for table in self.tables:
            found |= table.types
        return found

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over the node's columns, rewritten over those of the input."""
        return substitute(expression, self.columns)


Typing = Callable[[Leaf, Sequence[exp.Expression]], Sequence[pa.DataType]]
"""Returns the types of expressions over the columns of a leaf."""


def push_down(node: Node, typing: Typing, results: Results) -> tuple[Leaf, ...]:
    """The leaves below a stateless node of the same subquery, from left to right."""
    if isinstance(node, Input):
        return (_leaf(node),)
    if isinstance(node, Filter | Branch):
        return tuple(
            replace(leaf, where=leaf.where + conjuncts(leaf.over(node.predicate)))
            for leaf in below(node.child, typing, results)
        )
    if isinstance(node, Project):
        return tuple(_projected(leaf, node) for leaf in below(node.child, typing, results))
    if isinstance(node, Union):
        return _union(node, typing, results)
    if isinstance(node, TableJoin):
        return tuple(_with_table(leaf, node) for leaf in below(node.child, typing, results))
    if isinstance(node, Top):
        raise UnavailableError("ORDER BY", "ordering a window twice is not available yet")
    raise TypeError(f"not a stateless node: {node!r}")


def below(node: Node, typing: Typing, results: Results) -> tuple[Leaf, ...]:
    """The leaves below a node that an operator reads; rows of another subquery are one leaf."""
    found = results(node)
    if found is None:
        return push_down(node, typing, results)
    columns: dict[str, exp.Expression] = {n: column(n) for n in found.schema.names}
    columns.setdefault(EVENT_TIME, found.shown_time)
    return (Leaf(found, (), columns),)


def _leaf(node: Input) -> Leaf:
    raw = node.stream.schema
    columns: dict[str, exp.Expression] = {n: column(n) for n in raw.names}
    if not node.shadowed:
        event = event_time(node.stream)
        if event is not None:
            columns[EVENT_TIME] = event
    return Leaf(node.stream, (), columns)


def event_time(origin: Origin) -> exp.Expression | None:
    """The event time as an expression; None if only the source can read it from the column."""
    if isinstance(origin, EarlierRows):
        return origin.event_time
    raw = origin.schema.field(origin.time).type
    if pa.types.is_timestamp(raw):
        return column(origin.time)
    if pa.types.is_date(raw) or pa.types.is_string(raw):
        return exp.cast(column(origin.time), "TIMESTAMP", dialect="spark")
    return None


def shown_time(origin: Origin) -> exp.Expression | None:
    """The `ts` that rows show, as an expression; None if only the source can read it."""
    return origin.shown_time if isinstance(origin, EarlierRows) else event_time(origin)


def _projected(leaf: Leaf, node: Project) -> Leaf:
    columns = {n: leaf.over(e) for n, e in node.columns}
    if node.windowed:
        columns |= {n: leaf.columns[n] for n in WINDOW}
    shown = shown_time(leaf.origin)
    if shown is not None:
        columns[EVENT_TIME] = shown
    return replace(leaf, columns=columns)


def _with_table(leaf: Leaf, node: TableJoin) -> Leaf:
    added = table_leaf(node, leaf.where, leaf.columns, leaf.types)
    joined = replace(leaf, where=(), tables=(*leaf.tables, added))
    if node.filters:
        return joined
    columns: dict[str, exp.Expression] = {
        SideName(node.labels[0], n): e for n, e in leaf.columns.items()
    }
    columns |= {SideName(node.labels[1], n): column(own) for n, own in added.names.items()}
    shown = shown_time(leaf.origin)
    if shown is not None:
        columns[EVENT_TIME] = shown
    return replace(joined, columns=columns)


def _union(node: Union, typing: Typing, results: Results) -> tuple[Leaf, ...]:
    names = data_names(node)
    sides = [(data_names(c), below(c, typing, results)) for c in node.inputs]
    leaves = [(own, leaf) for own, side in sides for leaf in side]
    typed = [typing(leaf, [leaf.columns[n] for n in own]) for own, leaf in leaves]
    wanted = [union_type([t[i] for t in typed], n) for i, n in enumerate(names)]
    result = []
    for (own, leaf), types in zip(leaves, typed, strict=True):
        columns = {
            name: leaf.columns[old] if have == want else _cast(leaf.columns[old], want)
            for name, old, have, want in zip(names, own, types, wanted, strict=True)
        }
        if shown := shown_time(leaf.origin):
            columns[EVENT_TIME] = shown
        result.append(replace(leaf, columns=columns))
    return tuple(result)


def _cast(expression: exp.Expression, to: pa.DataType) -> exp.Expression:
    return exp.cast(expression, type_name(to), dialect="spark")
