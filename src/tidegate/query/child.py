"""What the nodes of the logical plan ask of their children: columns, types, checks over them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.query.check import AFTER_STATE, AFTER_WINDOW, bind_after, key_type
from tidegate.query.state import above_state
from tidegate.query.typing import UnknownKernel, bind, bind_predicate

if TYPE_CHECKING:
    from tidegate.query.node import Node


class SameColumns:
    """What a node says when its rows have the columns of its child."""

    child: Node
    stateful = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def windowed(self) -> bool:
        return self.child.windowed

    @property
    def names(self) -> tuple[str, ...]:
        return self.child.names

    @property
    def schema(self) -> pa.Schema:
        return self.child.schema

    @property
    def event_names(self) -> frozenset[str]:
        return self.child.event_names


def types_of(node: Node) -> dict[str, pa.DataType]:
    """The columns of a node by name."""
    return {f.name: f.type for f in node.schema}


def check_type(
    child: Node,
    expression: exp.Expression,
    where: str,
    predicate: bool = False,
    ordered: bool = False,
) -> None:
    """Refuse an expression that cannot be typed; what only Spark knows passes below state."""
    try:
        types = types_of(child)
    except UnknownKernel:
        return
    if above_state(child):
        remedy = AFTER_WINDOW if child.windowed else AFTER_STATE
        bound = bind_after(expression, types, where, predicate, remedy)
        if ordered:
            key_type(bound.type, expression.sql(dialect="spark"), where)
        return
    with suppress(UnknownKernel):
        (bind_predicate if predicate else bind)(expression, types, where)


def set_fields(node: object, **fields: object) -> None:
    """Give a frozen node what its checks have made of its fields."""
    for name, value in fields.items():
        object.__setattr__(node, name, value)
