"""Casts texts to times and to other types, with NULL for texts that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.schema import TIME

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
"""Patterns that every text matches which Arrow can cast to a type; others may match too."""
_DIGITS_BELOW_US = r"(\.\d{6})\d+"


def parse_time(text: pa.Array) -> pa.Array:
    """ISO 8601 texts as TIME, truncated to microseconds; without a zone UTC, NULL if unreadable.

    Costs one vectorised cast where all texts have the form of the first one, several where not.
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
    """Cast texts, with NULL for those that cannot be cast.

    Texts that do not look like the type are left out first. So the search for others that cannot be
    cast, which takes O(bad * log(distinct)) casts, has little to find.
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


def mostly_times(
    text: pa.Array | pa.ChunkedArray, parse: Callable[[pa.Array], pa.Array] = parse_time
) -> bool:
    """Whether more than half of the values are times; True where there are no values."""
    values = [v.decode("utf-8", "replace") for v in text.drop_null().cast(pa.binary()).to_pylist()]
    unreadable = parse(pa.array(values, pa.string())).null_count
    return not values or 2 * unreadable < len(values)


def _halves(text: pa.Array, type_: pa.DataType) -> list[pa.Array]:
    try:
        return [text.cast(type_)]
    except pa.ArrowInvalid:
        if len(text) == 1:
            return [pa.nulls(1, type_)]
        half = len(text) // 2
        return _halves(text[:half], type_) + _halves(text[half:], type_)
