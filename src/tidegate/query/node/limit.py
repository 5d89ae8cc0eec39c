"""LIMIT without a window: the first rows of a stream, counted by a single process object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.process.first_rows import FirstRows, limit_of, one_key
from tidegate.query.binder import UnknownKernel
from tidegate.query.name import EVENT_TIME, canonical, column, expression_text, is_column
from tidegate.query.node.node import Order, ProcessNode, Project, Top
from tidegate.query.node.process import Output
from tidegate.query.ranking import TopRanked
from tidegate.query.unqualified import unqualified_columns

if TYPE_CHECKING:
    from tidegate.query.node.node import Node


OWN_TIME = "own_ts"
"""The column that carries `ts` through the process when it differs from the event time."""


@dataclass(frozen=True, eq=False)
class Limit(ProcessNode):
    """The first rows of its child in the total order; all later ones are dropped."""

    @cached_property
    def own_time(self) -> bool:
        return OWN_TIME in dict(self.output)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.child.schema

    def typed(self, types: Mapping[str, pa.DataType]) -> Limit:
        limit = limit_of(self.factory)
        assert limit is not None
        return _limit(self.child, limit, tuple(types.items()))

    @property
    def class_name(self) -> str:
        return f"LIMIT {limit_of(self.factory)}"

    @property
    def summary(self) -> str:
        return f"limit {limit_of(self.factory)}"


def ordered(
    node: Node, order: Sequence[Order], limit: int | None, ranked: TopRanked | None = None
) -> Node:
    """ORDER BY and LIMIT, per window if there is one; else by event time, first rows only."""
    if node.windowed:
        return Top(node, tuple(order), limit, ranked)
    for key in order:
        plain = canonical(key.expression, node.names, "ORDER BY")
        if node.own_time and is_column(plain, {EVENT_TIME, *node.event_names}):
            raise QueryError(
                "ORDER BY",
                f"rows come in the order in which they are decided, some later than their "
                f"{EVENT_TIME}, so this order would have to wait for them",
                expression_text(plain),
                "Leave ORDER BY out.",
            )
        if key.descending or not is_column(plain, {EVENT_TIME, *node.event_names}):
            raise QueryError(
                "ORDER BY",
                "an unbounded stream has no last tuple to wait for, so its order cannot be changed",
                f"{expression_text(plain)}{' DESC' if key.descending else ''}",
                "Rows are in the order of event time. Give the stream a window and an aggregate, "
                "or leave ORDER BY out.",
            )
    return node if limit is None else first_rows(node, limit)


def first_rows(node: Node, limit: int) -> Node:
    """The first rows of a stream; the count is kept in the checkpoint like other state."""
    if limit < 0:
        raise QueryError("LIMIT", "must not be negative", str(limit))
    names = unqualified_columns(node)
    # Names of our own, because a process may not output a column that is called ts.
    named = [(f"c{i}", column(own)) for i, (_, own) in enumerate(names)]
    if node.own_time:
        named.append((OWN_TIME, column(EVENT_TIME)))
    held = Project(node, tuple(named))
    if not names:
        raise QueryError("LIMIT", "needs a column", "none", "Select one.")
    try:
        types = {f.name: f.type for f in held.schema if f.name != EVENT_TIME}
    except UnknownKernel:  # Spark tells them when the query is planned
        types = {name: pa.null() for name, _ in held.columns}
    kept = _limit(held, limit, tuple(types.items()))
    return Project(kept, tuple((name, column(f"c{i}")) for i, (name, _) in enumerate(names)))


def _limit(child: Node, limit: int, types: Output) -> Limit:
    return Limit(child, partial(FirstRows, limit, types), one_key, types)
