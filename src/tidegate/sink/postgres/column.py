"""Maps the types of results to those of Postgres, and says which other types a column may have."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidegate.leaf import is_list

_TEXT = "character varying"
_LENGTH = re.compile(rf"{_TEXT}\(\d+\)")
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")

_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], str, tuple[str, ...]], ...] = (
    (pa.types.is_boolean, "boolean", ()),
    (pa.types.is_int8, "smallint", ("integer", "bigint", "numeric")),
    (pa.types.is_int16, "smallint", ("integer", "bigint", "numeric")),
    (pa.types.is_int32, "integer", ("bigint", "numeric")),
    (pa.types.is_int64, "bigint", ("numeric",)),
    (pa.types.is_float32, "real", ("double precision",)),
    (pa.types.is_float64, "double precision", ()),
    (pa.types.is_string, "text", (_TEXT, "citext")),
    (pa.types.is_binary, "bytea", ()),
    (pa.types.is_date, "date", ()),
    (pa.types.is_timestamp, "timestamp with time zone", ("timestamp without time zone",)),
    (pa.types.is_duration, "interval", ()),
    (pa.types.is_time, "time without time zone", ()),
)
"""For each Arrow type (by its test): the type of a new column, and others that hold all values."""


@dataclass(frozen=True)
class TableColumn:
    """A column that a table has: its type as Postgres writes it, and whether it can be left out."""

    name: str
    type: str
    optional: bool


def is_array(type_: pa.DataType) -> bool:
    """Whether a column becomes an array. Lists of lists do not: Postgres wants equal lengths."""
    return is_list(type_) and not pa.types.is_nested(type_.value_type)


def column_type(type_: pa.DataType) -> str:
    """The Postgres type of a new column."""
    if is_array(type_):
        return f"{column_type(type_.value_type)}[]"
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    return next((made for test, made, _ in _PLAIN if test(type_)), "jsonb")


def fits(type_: pa.DataType, there: str) -> bool:
    """Whether a column of a table takes all values of a type.

    A greatest length of texts is ignored: it is a constraint of the table like any other.
    """
    if is_array(type_):
        return there.endswith("[]") and fits(type_.value_type, there.removesuffix("[]"))
    if pa.types.is_decimal(type_):
        found = _NUMERIC.fullmatch(there)
        if found is None or found[1] is None:
            return found is not None
        digits, scale = int(found[1]), int(found[2])
        whole = digits - scale >= type_.precision - type_.scale
        return bool(whole and scale >= type_.scale)
    others = next((others for test, _, others in _PLAIN if test(type_)), ("json",))
    return _LENGTH.sub(_TEXT, there) in (column_type(type_), *others)
