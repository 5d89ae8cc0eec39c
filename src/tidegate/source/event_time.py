"""The time column of a source, between what files hold and microseconds for the gate."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import SourceError, near
from tidegate.schema import TIME, type_name
from tidegate.source.protocol import Bools, Int64s

_ZONED = re.compile(r"^.{10}[T ].*(Z|[+-]\d\d:?(\d\d)?)$")
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WORD = r"^[+-]?(?i:inf|infinity|nan(\(.*\))?)$"
_LOOKS = {
    str(pa.int64()): r"^-?([0-9]+|0[xX][0-9a-fA-F]+)$",
    str(pa.float64()): f"{_NUMBER}|{_WORD}",
    str(pa.date32()): r"^\d{4}-\d\d-\d\d$",
    str(pa.timestamp("us")): r"^\d{4}-\d\d-\d\d",
    str(TIME): r"^\d{4}-\d\d-\d\d",
}
"""What texts of a type look like at least; what Arrow casts is always among them."""
_DIGITS_BELOW_US = r"(\.\d{6})\d+"


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


def to_us(column: pa.ChunkedArray | pa.Array) -> tuple[Int64s, Bools]:
    """Microseconds UTC and validity; dates count from midnight UTC, invalid entries are 0."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if valid is None:
        valid = np.ones(len(column), np.bool_)
    numbers = column.cast(TIME, safe=False).cast(pa.int64()).fill_null(0)
    return numbers.to_numpy(zero_copy_only=False), valid


def parse_time(text: pa.Array) -> pa.Array:
    """ISO 8601 texts as TIME, without a zone as UTC, cut to microseconds; NULL where unreadable.

    One vectorised cast where all texts have the form of the first, several where they are mixed.
    """
    first = (
        text[pc.index(text.is_valid(), True).as_py()].as_py() if text.null_count < len(text) else ""
    )
    try:
        return text.cast(TIME if _ZONED.match(first) else pa.timestamp("us")).cast(TIME)
    except pa.ArrowInvalid:
        return _parse_mixed(text)


def _parse_mixed(text: pa.Array) -> pa.Array:
    text = pc.utf8_trim(text, " \t")
    text = pc.replace_substring_regex(text, _DIGITS_BELOW_US, r"\1")
    zoned = pc.match_substring_regex(text, _ZONED.pattern)
    missing = pa.scalar(None, pa.string())
    local = cast_possible(pc.if_else(zoned, missing, text), pa.timestamp("us")).cast(TIME)
    return pc.coalesce(local, cast_possible(pc.if_else(zoned, text, missing), TIME))


def cast_possible(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast texts, NULL where one cannot be cast.

    What does not look like a value of the type is left out first, so that the search for what
    still cannot be cast, at O(bad * log(distinct)) casts, has little to find.
    """
    looks = _LOOKS.get(str(type_))
    if looks is not None:
        fits = pc.match_substring_regex(text, looks)
        text = pc.if_else(fits, text, pa.scalar(None, pa.string()))
    try:
        return text.cast(type_)
    except pa.ArrowInvalid:
        encoded = text.dictionary_encode()
        return pa.concat_arrays(_halves(encoded.dictionary, type_)).take(encoded.indices)


def mostly_times(text: pa.Array | pa.ChunkedArray) -> bool:
    """Whether more than half of the values are times; also where there are no values."""
    values = [v.decode("utf-8", "replace") for v in text.drop_null().cast(pa.binary()).to_pylist()]
    unreadable = parse_time(pa.array(values, pa.string())).null_count
    return not values or 2 * unreadable < len(values)


def _halves(text: pa.Array, type_: pa.DataType) -> list[pa.Array]:
    try:
        return [text.cast(type_)]
    except pa.ArrowInvalid:
        if len(text) == 1:
            return [pa.nulls(1, type_)]
        half = len(text) // 2
        return _halves(text[:half], type_) + _halves(text[half:], type_)


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))
