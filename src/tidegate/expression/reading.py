"""Reads text as a value the way Spark's CAST does, one text at a time.

Used for constants, when a query is built, and by the kernels, for texts of a whole column that are
not of the plain shape. Readers return None for text that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa

BLANK = "".join(map(chr, range(33))) + "\x7f"
"""Characters around a value that are ignored."""

TRUE = ("t", "true", "y", "yes", "1")
FALSE = ("f", "false", "n", "no", "0")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

_SPECIAL = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
    "nan": float("nan"),
}
_HEXADECIMAL = r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+"
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_DAY = r"\+?(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
_TIME = re.compile(
    _DAY + r"(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(.*))?)?)?)?", re.ASCII
)
_DATE = re.compile(_DAY + r"(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)


def read_integer(word: str, type_: pa.DataType) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", word):
        return None
    digits = word.lstrip("+-0")
    if len(digits) > 20:  # no integer type has so many, and Python reads some thousands only
        return None
    number, top = int(digits or "0"), 2 ** (type_.bit_width - 1)
    number = -number if word.startswith("-") else number
    return number if -top <= number < top else None


def read_float(word: str, type_: pa.DataType) -> float | None:
    """Digits, Java's names and suffixes, and Java's hexadecimal form."""
    if word.lower() in _SPECIAL:
        return _SPECIAL[word.lower()]
    bare = word[:-1] if word[-1:] in ("d", "D", "f", "F") else word
    if re.fullmatch(NUMBER, bare, re.ASCII):
        return float(bare)
    return float.fromhex(bare) if re.fullmatch(_HEXADECIMAL, bare) else None


def read_decimal(word: str, type_: pa.DataType) -> Decimal | None:
    """Rounds half up to the scale of the type."""
    if not re.fullmatch(NUMBER, word, re.ASCII):
        return None
    number = Decimal(word)
    if number and number.adjusted() > type_.precision:
        return None
    if number.adjusted() < -type_.scale - 1:
        return Decimal(0)
    rounded = number.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (type_.precision - type_.scale) else None


def read_boolean(word: str, type_: pa.DataType) -> bool | None:
    plain = word.lower()
    return True if plain in TRUE else False if plain in FALSE else None


def read_timestamp(word: str, type_: pa.DataType) -> datetime | None:
    """Accepts every form that Spark takes, from a year alone to a time with a zone."""
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


def read_date(word: str, type_: pa.DataType) -> date | None:
    match = _DATE.fullmatch(word)
    if match is None:
        return None
    year, month, day = match.groups()
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None


def _zone(name: str) -> tzinfo:
    """A fixed offset or a named region; raises ValueError or KeyError for anything else."""
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


READERS: dict[str, Callable[[str, pa.DataType], object]] = {
    "integer": read_integer,
    "float": read_float,
    "decimal": read_decimal,
    "boolean": read_boolean,
    "timestamp": read_timestamp,
    "date": read_date,
}
"""Readers by the kind of the wanted type. They take the text without blanks around it."""
