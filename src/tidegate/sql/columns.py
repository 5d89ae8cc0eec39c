"""Reads declared columns into a schema: `(name TYPE, ...)` in SQL, or `schema=` in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import OptionError, QueryError
from tidegate.query.name import distinct_names
from tidegate.query.types.coercion import UnknownKernel
from tidegate.query.types.sqltype import sql_type
from tidegate.schema import TIME, normal_schema, normal_type
from tidegate.sql.dialect import parse_columns

_NTZ = exp.DataType.Type.TIMESTAMPNTZ


def schema_of(columns: exp.Schema, where: str) -> pa.Schema:
    """The schema of columns declared in SQL."""
    fields = [
        (c.this.name, _type(c.args["kind"], f"{where}, {c.name}")) for c in columns.expressions
    ]
    distinct_names([name for name, _ in fields], where)
    return pa.schema(fields)


def schema_given(given: Any, where: str) -> pa.Schema:
    """The schema that a program gives: an Arrow schema, SQL text, or types by name."""
    if isinstance(given, str):
        return schema_of(_parsed(given, where), where)
    if isinstance(given, Mapping):
        given = pa.schema([(name, _given_type(t, f"{where}, {name}")) for name, t in given.items()])
    if not isinstance(given, pa.Schema):
        raise OptionError(
            where,
            "must be a pyarrow schema, a text or a dict",
            repr(given),
            'Write for example schema="zip STRING, amount DECIMAL(10,2)".',
        )
    if not given.names:
        raise OptionError(where, "must have a column", "none")
    distinct_names(given.names, where)
    return normal_schema(given)


def _parsed(text: str, where: str) -> exp.Schema:
    try:
        return parse_columns(text)
    except QueryError as error:
        raise QueryError(where, error.requirement, error.got, error.remedy) from None


def _given_type(type_: Any, where: str) -> pa.DataType:
    if isinstance(type_, pa.DataType):
        return normal_type(type_)
    if not isinstance(type_, str):
        raise OptionError(where, "the type must be one of Spark SQL, or an Arrow type", repr(type_))
    (column,) = _parsed(f"c {type_}", where).expressions[:1]
    return _type(column.args["kind"], where)


def _type(written: exp.DataType, where: str) -> pa.DataType:
    if written.this == exp.DataType.Type.ARRAY and written.expressions:
        return pa.list_(_type(written.expressions[0], where))
    if written.this == exp.DataType.Type.STRUCT and written.expressions:
        inner = [(f.this.name, _type(f.args["kind"], where)) for f in written.expressions]
        return pa.struct(inner)
    if written.this == _NTZ:
        return TIME
    try:
        return sql_type(written, where)
    except UnknownKernel as error:
        raise QueryError(
            where,
            "the type must be one that columns can have",
            str(error.got),
            "Use STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), "
            "DATE, TIMESTAMP, BINARY, ARRAY<...> or STRUCT<...>.",
        ) from None
