"""Reads text as numbers, booleans and times the way Spark's CAST does.

Every reader returns the values, NULL where the text cannot be read, and flags of those rows. Arrow
converts well-formed text by the column; irregular text is read once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.expression import reading
from tidegate.expression.reading import BLANK, FALSE, NUMBER, TRUE
from tidegate.operate.kernels.expression.vector import by_distinct, none_where

Converted = tuple[Any, Any]
_INTEGER = r"\A[+-]?[0-9]+\z"
_FLOAT = rf"\A{NUMBER}\z"
_TIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?\z"
_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"


def _read(
    text: Any,
    type_: pa.DataType,
    shape: str,
    fast: Callable[[Any, pa.DataType], Any],
    slow: Callable[[str, pa.DataType], object],
) -> Converted:
    """Read by Arrow where all text has the plain shape, else value by value."""
    trimmed = pc.utf8_trim(text, characters=BLANK)
    if pc.all(pc.match_substring_regex(trimmed, pattern=shape)).as_py() is not False:
        try:
            return fast(trimmed, type_), None
        except pa.ArrowInvalid:
            pass  # a well-formed value out of range: the slow reader finds which one
    values = by_distinct(trimmed, lambda word: None if word is None else slow(word, type_), type_)
    return values, pc.and_(text.is_valid(), values.is_null())


def _cast(words: Any, type_: pa.DataType) -> Any:
    return words.cast(type_)


def _cast_unsigned(words: Any, type_: pa.DataType) -> Any:
    return pc.utf8_ltrim(words, characters="+").cast(type_)


def _cast_time(words: Any, type_: pa.DataType) -> Any:
    return words.cast(pa.timestamp("us")).view(type_)


def _reader(
    shape: str, fast: Callable[[Any, pa.DataType], Any], slow: Callable[[str, pa.DataType], object]
) -> Callable[[Any, pa.DataType], Converted]:
    return lambda text, type_: _read(text, type_, shape, fast, slow)


def _to_decimal(text: Any, type_: pa.DataType) -> Converted:
    whole = max(1, type_.precision - type_.scale)
    plain = rf"\A-?[0-9]{{1,{whole}}}(\.[0-9]{{0,{type_.scale}}})?\z"
    return _read(text, type_, plain, _cast, reading.read_decimal)


def _to_boolean(text: Any, type_: pa.DataType) -> Converted:
    word = pc.ascii_lower(pc.utf8_trim(text, characters=BLANK))
    yes = pc.is_in(word, value_set=pa.array(TRUE))
    no = pc.is_in(word, value_set=pa.array(FALSE))
    known = pc.or_(yes, no)
    return none_where(pc.invert(known), yes), pc.and_(text.is_valid(), pc.invert(known))


READERS: dict[str, Callable[[Any, pa.DataType], Converted]] = {
    "integer": _reader(_INTEGER, _cast_unsigned, reading.read_integer),
    "float": _reader(_FLOAT, _cast_unsigned, reading.read_float),
    "decimal": _to_decimal,
    "boolean": _to_boolean,
    "timestamp": _reader(_TIME, _cast_time, reading.read_timestamp),
    "date": _reader(_DATE, _cast, reading.read_date),
}
