"""The rules that types obey at windows and unions, between typing and the nodes that use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Expr
from tidegate.query.coercion import common
from tidegate.query.typing import UnknownKernel, bind, bind_predicate
from tidegate.schema import type_name

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
    """Bind an expression over the rows of windows or over pairs, where Spark cannot be asked."""
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
    """The type of a column of a union; text and numbers have none in common."""
    return common(types, "UNION ALL", f"every side of column {name}", strings=False)


def key_type(type_: pa.DataType, name: str, where: str = "GROUP BY") -> pa.DataType:
    """The type of a key, which must have an order and an equality."""
    if pa.types.is_nested(type_):
        raise QueryError(where, f"{name} must be a plain value", type_name(type_))
    return type_
