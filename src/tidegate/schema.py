"""The engine's column types, and the conversion of what sources deliver to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.calendar.microsecond import DAY_US, FIRST_US, LAST_US
from tidegate.errors import QueryError, SourceError, near
from tidegate.leaf import each_leaf, is_list, uuid_texts

TIME = pa.timestamp("us", tz="UTC")
"""The type of every event time: microseconds, UTC."""

_UNITS_PER_US = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds per unit of a timestamp, as a fraction."""

_INT64 = np.iinfo(np.int64)

_DURATION, _TIME_OF_DAY = pa.duration("us"), pa.time64("us")

_AS: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_timestamp, TIME),
    (pa.types.is_duration, _DURATION),
    (pa.types.is_time, _TIME_OF_DAY),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_null, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
)
"""The engine's type for Arrow types that it does not have; mostly what Spark SQL does."""

_OWN = frozenset(
    (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32(), TIME, _DURATION, _TIME_OF_DAY),
    )
)
"""The plain types of the engine, besides decimals."""

_UUID = "arrow.uuid"
_EXTENSIONS = {_UUID: pa.string(), "arrow.bool8": pa.bool_()}
"""Extension types that do not become their storage type."""

_MOST_DIGITS = 38
"""The digits of a decimal, as in Spark SQL."""


def normal_type(type_: pa.DataType) -> pa.DataType:
    """The engine's type for an Arrow type; a type without one stays as it is (`foreign_part`)."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return normal_type(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return _EXTENSIONS.get(type_.extension_name) or normal_type(type_.storage_type)
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(normal_type(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(normal_type(type_.key_type), normal_type(type_.item_type))
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(normal_type(type_.value_type)))
    if pa.types.is_decimal(type_):
        digits = type_.precision - min(type_.scale, 0)
        return pa.decimal128(digits, max(type_.scale, 0)) if digits <= _MOST_DIGITS else type_
    return next((to for test, to in _AS if test(type_)), type_)


def foreign_part(type_: pa.DataType) -> pa.DataType | None:
    """The first part of a normalised type that the engine cannot compute with, or None.

    Foreign are decimals of more than 38 digits, intervals of months, unions and empty structs.
    """
    if pa.types.is_nested(type_) and type_.num_fields and not pa.types.is_union(type_):
        parts = (foreign_part(type_.field(i).type) for i in range(type_.num_fields))
        return next((part for part in parts if part is not None), None)
    own = type_ in _OWN or pa.types.is_decimal128(type_)
    return None if own else type_


def own_type(type_: pa.DataType, where: str) -> pa.DataType:
    """The engine's type for one that a program names; raises if queries cannot compute with it."""
    made = normal_type(type_)
    if (part := foreign_part(made)) is not None:
        raise QueryError(
            where,
            "the type must be one that queries can compute with",
            str(part),
            f"Use text, or a decimal of up to {_MOST_DIGITS} digits.",
        )
    return made


def check_own_types(schema: pa.Schema, where: str) -> None:
    """Raises for columns whose type queries cannot compute with."""
    for field in schema:
        if (part := foreign_part(field.type)) is not None:
            raise SourceError(
                where,
                f"column {field.name} must have a type that queries can compute with",
                str(part),
                "Select other columns: one that is not read may have any type. Or write it as "
                f"text, or as a decimal of up to {_MOST_DIGITS} digits.",
            )


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """A file's schema in the engine's types; names and order stay, metadata is dropped."""
    return pa.schema([pa.field(f.name, normal_type(f.type)) for f in schema])


def cast_table(table: pa.Table, schema: pa.Schema, where: str, time: str | None = None) -> pa.Table:
    """Converts a table to a normalised schema; timestamps without a zone are taken as UTC.

    Nanoseconds are rounded down to microseconds. A timestamp beyond 64 bits of microseconds raises,
    except in the event time column: there it becomes one that `event_times` rejects. Columns that
    have their type already cost nothing.
    """
    if table.schema.equals(schema, check_metadata=True):
        return table
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            column = _normal(column, None if field.name == time else where, field)
        columns.append(column)
    return pa.table(columns, schema=schema)


def fit_rows(
    rows: pa.Table | Sequence[Mapping[str, object]],
    schema: pa.Schema | None,
    where: str,
    time: str | None = None,
) -> pa.Table:
    """Rows from a program as a table of a normalised schema; with None, of the rows' own schema.

    Keys that a mapping lacks are NULL. Raises for columns that a table lacks, and for keys that are
    not in the schema.
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
        return cast_table(rows, schema, where, time)
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
    """The schema for these rows, None to infer it; raises for keys that are not in it."""
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
    """Raises if the time column is missing or holds no times."""
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


def event_times(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Event times in microseconds UTC, and which of them are valid.

    This is the one rule for all sources: an event time is not NULL and lies in the years 1 to 9999.
    The range leaves windows, joins and timers room to compute in 64 bits.
    """
    times, valid = to_us(column)
    if len(times) and not (times.min() >= FIRST_US and times.max() <= LAST_US):
        valid = valid & (times >= FIRST_US) & (times <= LAST_US)
    return times, valid


def to_us(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds UTC and validity. Dates count from midnight UTC; invalid entries are 0.

    Rounds down. Values beyond 64 bits become the nearest end of the range.
    """
    factor, divisor = _unit(column.type)
    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    counts = column.cast(whole)
    counts = counts.fill_null(0) if column.null_count else counts
    numbers = counts.to_numpy(zero_copy_only=False)
    if divisor != 1:
        numbers = np.floor_divide(numbers, divisor)
    elif factor != 1:
        numbers = _multiplied(numbers.astype(np.int64), factor)
    if not column.null_count:
        return numbers, np.ones(len(column), np.bool_)
    return numbers, column.is_valid().to_numpy(zero_copy_only=False)


def _normal(column: pa.ChunkedArray, where: str | None, field: pa.Field) -> pa.ChunkedArray:
    """Converts a column to the type of a field, leaf by leaf inside lists, maps and structs."""

    def change(leaf: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(leaf.type):
            return each_leaf(leaf.dictionary, change).take(leaf.indices)
        if pa.types.is_run_end_encoded(leaf.type):
            at = np.arange(leaf.offset, leaf.offset + len(leaf))
            runs = np.searchsorted(leaf.run_ends.to_numpy(), at, "right")
            return each_leaf(leaf.values, change).take(pa.array(runs))
        if isinstance(leaf, pa.ExtensionArray):
            is_uuid = leaf.type.extension_name == _UUID
            return uuid_texts(leaf.storage) if is_uuid else each_leaf(leaf.storage, change)
        if (to := normal_type(leaf.type)) in (TIME, _DURATION, _TIME_OF_DAY):
            return _micros(leaf, to, where, field.name)
        return leaf.cast(to) if foreign_part(to) is None else leaf

    chunks = [each_leaf(chunk, change) for chunk in column.chunks]
    made = pa.chunked_array(chunks, None if chunks else field.type)
    return made if made.type == field.type else made.cast(field.type)


def _micros(column: pa.Array, to: pa.DataType, where: str | None, name: str) -> pa.Array:
    """Times of any unit in microseconds; with `where`, raises for values beyond 64 bits."""
    if _unit(column.type) == (1, 1):
        return column.cast(to)
    numbers, valid = to_us(column)
    if where is not None and len(numbers):
        beyond = valid & ((numbers == _INT64.min) | (numbers == _INT64.max))
        if beyond.any():
            number = column.cast(pa.int64())[int(np.argmax(beyond))].as_py()
            raise SourceError(
                where,
                f"times in column {name} must fit into 64 bits of microseconds",
                f"{number} {column.type.unit}",
                "Write it in microseconds, with NULL for what has no time. "
                "A query that does not read the column needs it for late and rejected rows only.",
            )
    mask = None if valid.all() else ~valid
    return pa.array(numbers, pa.int64(), mask=mask).view(to)


def _unit(type_: pa.DataType) -> tuple[int, int]:
    """Microseconds per unit of a date or timestamp, as a fraction."""
    if type_ == pa.date32():
        return DAY_US, 1
    return _UNITS_PER_US["ms" if type_ == pa.date64() else type_.unit]


def _multiplied(numbers: NDArray[np.int64], factor: int) -> NDArray[np.int64]:
    """Products; those beyond 64 bits become the nearest end of the range."""
    limit = _INT64.max // factor
    if not len(numbers) or (-limit <= numbers.min() and numbers.max() <= limit):
        return numbers * factor
    products = np.clip(numbers, -limit, limit) * factor
    return np.where(numbers > limit, _INT64.max, np.where(numbers < -limit, _INT64.min, products))


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def type_name(type_: pa.DataType) -> str:
    """Spark SQL's name of a type, for messages and `explain`."""
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
    if pa.types.is_duration(type_):
        return "interval"
    if pa.types.is_time(type_):
        return "time"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    return names.get(str(type_), str(type_))


def a_type(type_: pa.DataType) -> str:
    """The name of a type with its article."""
    name = type_name(type_)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def columns_text(schema: pa.Schema) -> str:
    """The columns with their types, as a message lists them."""
    return ", ".join(f"{f.name} {type_name(f.type)}" for f in schema)
