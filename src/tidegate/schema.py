"""The types tuples have inside the engine, between what files hold and what operators see."""

from __future__ import annotations

import pyarrow as pa

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
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            column = column.cast(field.type, safe=not pa.types.is_timestamp(field.type))
        columns.append(column)
    return pa.table(columns, schema=schema)


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
