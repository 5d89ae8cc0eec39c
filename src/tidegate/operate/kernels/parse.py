"""Text read as numbers, booleans and times the way Spark's CAST reads it, for the cast kernel.

Every reader returns the values, NULL where the text cannot be read, and which rows those are.
Well-formed text is converted by Arrow at once; irregular text once per distinct value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.vector import by_distinct, none_where

Converted = tuple[Any, Any]
_BLANK = "".join(map(chr, range(33))) + "\x7f"
_INTEGER = r"\A[+-]?[0-9]+\z"
_FLOAT = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_SPECIAL = {
    "inf": float("inf"),
    "+inf": float("inf"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
    "nan": float("nan"),
}
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_PLAIN_TIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?\z"
_PLAIN_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_DAY = r"\+?(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
_TIME = re.compile(
    _DAY + r"(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(.*))?)?)?)?", re.ASCII
)
_DATE = re.compile(_DAY + r"(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)


def _read(
    text: Any, shape: str, type_: pa.DataType, slow: Callable[[str], object], pick: Any = None
) -> Converted:
    """Arrow's own reading where all the text has the plain shape, else a slow reader's."""
    trimmed = pc.utf8_trim(text, characters=_BLANK)
    if pc.all(pc.match_substring_regex(trimmed, pattern=shape)).as_py() is not False:
        try:
            return (pick or _cast)(trimmed, type_), None
        except pa.ArrowInvalid:
            pass  # a well-formed value out of range: the slow reader finds which one
    values = by_distinct(trimmed, lambda t: None if t is None else slow(t), type_)
    return values, pc.and_(text.is_valid(), values.is_null())


def _cast(text: Any, type_: pa.DataType) -> Any:
    return text.cast(type_)


def to_integer(text: Any, type_: pa.DataType) -> Converted:
    top = 2 ** (type_.bit_width - 1)

    def slow(word: str) -> int | None:
        if not re.fullmatch(r"[+-]?[0-9]+", word):
            return None
        number = int(word)
        return number if -top <= number < top else None

    def fast(words: Any, type_: pa.DataType) -> Any:
        return pc.utf8_ltrim(words, characters="+").cast(type_)

    return _read(text, _INTEGER, type_, slow, fast)


def to_float(text: Any, type_: pa.DataType) -> Converted:
    def slow(word: str) -> float | None:
        if word.lower() in _SPECIAL:
            return _SPECIAL[word.lower()]
        bare = word[:-1] if word[-1:] in ("d", "D", "f", "F") else word
        if re.fullmatch(_FLOAT[2:-2], bare, re.ASCII):
            return float(bare)
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+", bare):
            return float.fromhex(bare)
        return None

    def fast(words: Any, type_: pa.DataType) -> Any:
        return pc.utf8_ltrim(words, characters="+").cast(type_)

    return _read(text, _FLOAT, type_, slow, fast)


def to_decimal(text: Any, type_: pa.DataType) -> Converted:
    exact = Context(prec=400, rounding=ROUND_HALF_UP)
    step, limit = Decimal(1).scaleb(-type_.scale), Decimal(10) ** (type_.precision - type_.scale)

    def slow(word: str) -> Decimal | None:
        if not re.fullmatch(_FLOAT[2:-2], word, re.ASCII):
            return None
        number = Decimal(word)
        if number and number.adjusted() > type_.precision:
            return None
        if number.adjusted() < -type_.scale - 1:
            return Decimal(0)
        rounded = number.quantize(step, ROUND_HALF_UP, exact)
        return rounded if abs(rounded) < limit else None

    plain = (
        rf"\A-?[0-9]{{1,{max(1, type_.precision - type_.scale)}}}(\.[0-9]{{0,{type_.scale}}})?\z"
    )
    return _read(text, plain, type_, slow)


def to_boolean(text: Any, type_: pa.DataType) -> Converted:
    word = pc.ascii_lower(pc.utf8_trim(text, characters=_BLANK))
    yes = pc.is_in(word, value_set=pa.array(_TRUE))
    no = pc.is_in(word, value_set=pa.array(_FALSE))
    known = pc.or_(yes, no)
    return none_where(pc.invert(known), yes), pc.and_(text.is_valid(), pc.invert(known))


def to_timestamp(text: Any, type_: pa.DataType) -> Converted:
    def fast(words: Any, type_: pa.DataType) -> Any:
        return words.cast(pa.timestamp("us")).view(type_)

    return _read(text, _PLAIN_TIME, type_, read_timestamp, fast)


def to_date(text: Any, type_: pa.DataType) -> Converted:
    return _read(text, _PLAIN_DATE, type_, read_date)


def read_timestamp(word: str) -> datetime | None:
    """One time in any of the forms Spark takes, from a year alone to a time with a zone."""
    match = _TIME.fullmatch(word)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        shift = _zone(zone.strip()) if zone and zone.strip() else UTC
        moment = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "").ljust(6, "0")[:6]),
            shift,
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, KeyError, OSError):
        return None


def read_date(word: str) -> date | None:
    match = _DATE.fullmatch(word)
    if match is None:
        return None
    year, month, day = match.groups()
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None


def _zone(name: str) -> tzinfo:
    """A fixed offset or a named region; raises ValueError or KeyError when it is neither."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is None:
        return ZoneInfo(name)
    sign, hours, minutes, seconds = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if offset > timedelta(hours=18):
        raise ValueError(name)
    return timezone(-offset if sign == "-" else offset)


READERS: dict[str, Callable[[Any, pa.DataType], Converted]] = {
    "integer": to_integer,
    "float": to_float,
    "decimal": to_decimal,
    "boolean": to_boolean,
    "timestamp": to_timestamp,
    "date": to_date,
}
