"""Reads a single condition, by which a user selects rows of an output."""

from __future__ import annotations

import pyarrow as pa
import sqlglot

from tidegate.errors import QueryError
from tidegate.expression.tree import Expr
from tidegate.query.binder import bind_predicate
from tidegate.query.name import as_expression, canonical


def read_condition(text: str, schema: pa.Schema, where: str) -> Expr:
    """A bound condition over rows of a schema."""
    try:
        parsed = as_expression(sqlglot.parse_one(text, dialect="spark"))
    except sqlglot.errors.SqlglotError as error:
        got = str(error).partition("\n")[0]
        raise QueryError(where, "must be a condition of SQL", got) from None
    types = {field.name: field.type for field in schema}
    return bind_predicate(canonical(parsed, schema.names, where), types, where)
