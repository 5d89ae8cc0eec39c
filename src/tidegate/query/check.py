"""Type checks of a node's expressions against the columns of its children."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Expr
from tidegate.query.binder import UnknownKernel, bind, bind_predicate
from tidegate.query.name import EVENT_TIME
from tidegate.query.types.coercion import common
from tidegate.schema import type_name

if TYPE_CHECKING:
    from tidegate.query.node.node import Node

_TYPES = "_types"

AFTER_WINDOW = (
    "After a window there is no Spark SQL: compute it before the aggregate, or from the output."
)
AFTER_STATE = (
    "Over the results of windows, joins and processes there is no Spark SQL: compute it before "
    "them, or from the output."
)


def bind_after(
    expression: exp.Expression,
    types: Mapping[str, pa.DataType],
    where: str,
    predicate: bool = False,
    remedy: str = AFTER_WINDOW,
) -> Expr:
    """Binds an expression that Spark never sees; raises if only Spark could evaluate it."""
    try:
        return (bind_predicate if predicate else bind)(expression, types, where)
    except UnknownKernel as missing:
        raise QueryError(
            where,
            missing.requirement,
            missing.got,
            remedy,
        ) from None


def union_type(types: Iterable[pa.DataType], name: str) -> pa.DataType:
    """The type of a column of a union; text and numbers have no common type."""
    return common(types, "UNION ALL", f"every side of column {name}", strings=False)


def key_type(type_: pa.DataType, name: str, where: str = "GROUP BY") -> pa.DataType:
    """The type of a key; raises for types without an order and an equality."""
    if pa.types.is_nested(type_):
        raise QueryError(where, f"{name} must be a plain value", type_name(type_))
    return type_


def types_of(node: Node) -> dict[str, pa.DataType]:
    """The column types of a node by name; cached, because every column above asks for them."""
    kept = vars(node)
    if _TYPES not in kept:
        try:
            kept[_TYPES] = {f.name: f.type for f in node.schema}
        except UnknownKernel as missing:
            kept[_TYPES] = missing
    found: dict[str, pa.DataType] | UnknownKernel = kept[_TYPES]
    if isinstance(found, UnknownKernel):
        raise found
    return found


def check_type(
    child: Node,
    expression: exp.Expression,
    where: str,
    predicate: bool = False,
    ordered: bool = False,
) -> None:
    """Raises for an expression that has no type. Below state, what only Spark knows is accepted."""
    try:
        types = types_of(child)
    except UnknownKernel:
        return
    if child.after_state:
        remedy = AFTER_WINDOW if child.windowed else AFTER_STATE
        bound = bind_after(expression, types, where, predicate, remedy)
        if ordered:
            key_type(bound.type, expression.sql(dialect="spark"), where)
        return
    with suppress(UnknownKernel):
        (bind_predicate if predicate else bind)(expression, types, where)


def refuse_shadowed(child: Node, where: str, remedy: str) -> None:
    """Raises if a column of the child has the name of the event time but is not the event time."""
    if EVENT_TIME in child.names and EVENT_TIME not in child.event_names:
        raise QueryError(
            where,
            f"the name {EVENT_TIME} belongs to the event time",
            "a column of that name",
            remedy,
        )


def set_fields(node: object, **fields: object) -> None:
    """Replaces fields of a frozen node with their checked form."""
    for name, value in fields.items():
        object.__setattr__(node, name, value)
