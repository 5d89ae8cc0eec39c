"""The rule that turns the stateless nodes above an input into expressions over its raw columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.check import union_type
from tidegate.query.name import EVENT_TIME, column, conjuncts, substitute
from tidegate.query.node import (
    Branch,
    Filter,
    Input,
    Node,
    Project,
    StreamDef,
    Union,
    data_names,
)
from tidegate.schema import type_name

Typing = Callable[[StreamDef, Sequence[exp.Expression]], Sequence[pa.DataType]]
"""Gives the types of expressions over a stream's raw columns."""


@dataclass(frozen=True)
class Leaf:
    """One input with all that is stateless above it: conditions, and each column of the node."""

    stream: StreamDef
    where: tuple[exp.Expression, ...]
    columns: Mapping[str, exp.Expression]

    def over(self, expression: exp.Expression) -> exp.Expression:
        """An expression over the node's columns, said over the raw ones."""
        return substitute(expression, self.columns)


def push_down(node: Node, typing: Typing) -> tuple[Leaf, ...]:
    """The leaves below a stateless node, in the order of their stream positions."""
    if isinstance(node, Input):
        return (_leaf(node),)
    if isinstance(node, Filter | Branch):
        return tuple(
            replace(leaf, where=leaf.where + conjuncts(leaf.over(node.predicate)))
            for leaf in push_down(node.child, typing)
        )
    if isinstance(node, Project):
        return tuple(_projected(leaf, node) for leaf in push_down(node.child, typing))
    if isinstance(node, Union):
        return _union(node, typing)
    raise TypeError(f"not a stateless node: {node!r}")


def streams_of(leaves: Sequence[Leaf]) -> tuple[StreamDef, ...]:
    """The streams by position; one that is there several times must be the same each time."""
    known: dict[str, StreamDef] = {}
    for leaf in leaves:
        stream = leaf.stream
        if known.setdefault(stream.name, stream) != stream:
            raise QueryError(
                f"stream {stream.name}",
                "a name must stand for one stream",
                "two that differ",
                "Give one of them another name.",
            )
    return tuple(leaf.stream for leaf in leaves)


def _leaf(node: Input) -> Leaf:
    raw = node.stream.schema
    columns: dict[str, exp.Expression] = {n: column(n) for n in raw.names}
    if not node.shadowed:
        event = _event_time(node.stream)
        if event is not None:
            columns[EVENT_TIME] = event
    return Leaf(node.stream, (), columns)


def _event_time(stream: StreamDef) -> exp.Expression | None:
    """The event time as an expression; None where only the source knows how to read it."""
    raw = stream.schema.field(stream.time).type
    if pa.types.is_timestamp(raw):
        return column(stream.time)
    if pa.types.is_date(raw) or pa.types.is_string(raw):
        return exp.cast(column(stream.time), "TIMESTAMP", dialect="spark")
    return None


def _projected(leaf: Leaf, node: Project) -> Leaf:
    columns = {n: leaf.over(e) for n, e in node.columns}
    event = _event_time(leaf.stream)
    if event is not None:
        columns[EVENT_TIME] = event
    return replace(leaf, columns=columns)


def _union(node: Union, typing: Typing) -> tuple[Leaf, ...]:
    names = data_names(node)
    sides = [(data_names(c), push_down(c, typing)) for c in node.inputs]
    leaves = [(own, leaf) for own, side in sides for leaf in side]
    typed = [typing(leaf.stream, [leaf.columns[n] for n in own]) for own, leaf in leaves]
    wanted = [union_type([t[i] for t in typed], n) for i, n in enumerate(names)]
    result = []
    for (own, leaf), types in zip(leaves, typed, strict=True):
        columns = {
            name: leaf.columns[old] if have == want else _cast(leaf.columns[old], want)
            for name, old, have, want in zip(names, own, types, wanted, strict=True)
        }
        if event := _event_time(leaf.stream):
            columns[EVENT_TIME] = event
        result.append(replace(leaf, columns=columns))
    return tuple(result)


def _cast(expression: exp.Expression, to: pa.DataType) -> exp.Expression:
    return exp.cast(expression, type_name(to), dialect="spark")
