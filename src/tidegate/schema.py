"""The types tuples have inside the engine, between what files hold and what operators see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import SourceError, near

TIME = pa.timestamp("us", tz="UTC")
"""The type of every event time: microseconds, UTC."""

_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
"""Types Spark SQL does not have, and the ones it reads them as."""


def normal_type(type_: pa.DataType) -> pa.DataType:
    """The engine's type for a file's type: one width of strings, one kind of timestamp."""
    if pa.types.is_dictionary(type_):
        return normal_type(type_.value_type)
    if pa.types.is_timestamp(type_):
        return TIME
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_null(type_):
        return pa.string()
    return _SIGNED.get(type_, type_)


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """The engine's schema for a file's schema; names and order stay, metadata goes."""
    return pa.schema([pa.field(f.name, normal_type(f.type)) for f in schema])


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a table the types of a normalised schema; timestamps without a zone are taken as UTC.

    Nanoseconds are cut to microseconds. Costs nothing for columns that have their type already.
    """
    if table.schema.equals(schema, check_metadata=True):
        return table
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            column = column.cast(field.type, safe=not pa.types.is_timestamp(field.type))
        columns.append(column)
    return pa.table(columns, schema=schema)


def fit_rows(
    rows: pa.Table | Sequence[Mapping[str, object]], schema: pa.Schema | None, where: str
) -> pa.Table:
    """Rows that a program hands over, as a table of a normalised schema; None takes theirs.

    Keys that mappings lack are NULL; columns that a table lacks, and keys that the schema does not
    have, are refused.
    """
    try:
        if not isinstance(rows, pa.Table):
            if not rows and schema is not None:
                return schema.empty_table()
            rows = pa.Table.from_pylist([dict(r) for r in rows], _checked_keys(rows, schema, where))
        schema = normal_schema(rows.schema) if schema is None else schema
        absent = [n for n in schema.names if n not in rows.column_names]
        if absent:
            raise SourceError(
                where,
                f"rows must have the columns {', '.join(schema.names)}",
                f"rows without {', '.join(absent)}",
                "Write NULL where there is no value.",
            )
        return cast_table(rows, schema)
    except (pa.ArrowException, TypeError) as error:
        raise SourceError(
            where,
            "rows must fit the columns of the first ones",
            str(error),
            "Give schema= to say which types the columns have.",
        ) from error


def _checked_keys(
    rows: Sequence[Mapping[str, object]], schema: pa.Schema | None, where: str
) -> pa.Schema | None:
    """The known columns; new ones of later rows are refused, lacking ones are NULL."""
    if schema is None:
        return None
    known = set(schema.names)
    extra = [k for row in rows for k in row if k not in known]
    if extra:
        raise SourceError(
            where,
            f"rows must have the columns {', '.join(schema.names)}",
            f"column {extra[0]}",
            "Give schema= with all columns.",
        )
    return schema


def check_time(schema: pa.Schema, time: str, where: str) -> None:
    """Refuse a time column that is not there or that holds no times."""
    fit = [f.name for f in schema if _is_time(f.type)]
    listed = f"Columns with times are: {', '.join(fit)}." if fit else "No column holds times."
    if time not in schema.names:
        remedy = listed if fit else f"{listed} {near(time, schema.names)}"
        raise SourceError(where, "the time column must be there", f"column {time}", remedy)
    type_ = schema.field(time).type
    if not _is_time(type_):
        raise SourceError(
            where,
            f"time column {time} must be a timestamp or a date",
            type_name(type_),
            f"Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). {listed}",
        )


def to_us(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds UTC and validity; dates count from midnight UTC, invalid entries are 0."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    numbers = column.cast(TIME, safe=False).cast(pa.int64())
    if not column.null_count:
        return numbers.to_numpy(zero_copy_only=False), np.ones(len(column), np.bool_)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), valid


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def type_name(type_: pa.DataType) -> str:
    """The name Spark SQL has for a type, for messages and for `explain`."""
    names = {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "float": "float",
        "double": "double",
        "bool": "boolean",
        "string": "string",
        "date32[day]": "date",
    }
    if pa.types.is_timestamp(type_):
        return "timestamp"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return names.get(str(type_), str(type_))


def columns_text(schema: pa.Schema) -> str:
    """The columns with their types, as a message lists them."""
    return ", ".join(f"{f.name} {type_name(f.type)}" for f in schema)
