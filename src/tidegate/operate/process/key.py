"""The names by which entries of declared state are stored and found.

A name is made of the state's name and a plain key. Keys that are equal in Python, such as 1, 1.0
and True, have the same plain key.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np


class StoredEntry(NamedTuple):
    """A stored entry without its name."""

    number: int
    until_us: int
    data: bytes


class EntryChange(NamedTuple):
    """A change of an entry: its new content, or with `gone` the content that was removed."""

    name: bytes
    stored: StoredEntry
    gone: bool


def prefix_of(state: str) -> bytes:
    """The prefix of the names of a state's entries; unique, as a state's name has no colon."""
    return f"{state}:".encode()


@lru_cache
def span_of(prefix: bytes) -> tuple[int, int]:
    """The lowest entry number of a state, and the lowest after its entries."""
    first = (crc32(prefix) >> 3) + 1
    return first << 32, (first + 1) << 32


def entry_of(name: bytes) -> int:
    """The number by which rows are sorted and found; two names seldom share one."""
    return span_of(name[: name.index(b":") + 1])[0] | crc32(name)


def plain_key(key: Any) -> Any:
    """The one key that represents all keys equal to it, as 1 represents 1.0 and True.

    Gives the key itself if it is that one. Raises TypeError for a key that is not of a plain type,
    or not equal to itself (NaN).
    """
    of_type = _PLAIN_KEYS.get(type(key))
    if of_type is None or key != key:  # noqa: PLR0124 - NaN, which a mapping may have several times
        raise TypeError(
            "a key must be a number other than NaN, a text, bytes, a date or time, a duration, "
            f"None, or a tuple or frozenset of these; got {key!r}"
        )
    return of_type(key)


def _itself(key: Any) -> Any:
    return key


def _of_float(key: float) -> float:
    return int(key) if key.is_integer() else key


def _of_decimal(key: Decimal) -> Any:
    if key.is_finite() and key == key.to_integral_value():
        return int(key)
    if float(key) == key:
        return float(key)
    digits = len(key.as_tuple().digits)  # as many as there are: trailing zeros go, nothing else
    return key.normalize(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN))


def _of_moment(key: datetime) -> datetime:
    # As Python compares them: by the instant, or by the clock where there is no zone. In a zone
    # with summer time an instant may be equal to nothing but itself.
    if key.tzinfo is not None and type(key.tzinfo) is not timezone:
        raise TypeError(f"a key that is a time must be in UTC or have no zone; got {key!r}")
    if key.fold:
        key = key.replace(fold=0)
    return key if key.tzinfo is None or key.tzinfo is UTC else key.astimezone(UTC)


def _of_tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    plain = tuple(map(plain_key, key))
    return key if all(map(_is, plain, key)) else plain


def _of_set(key: frozenset[Any]) -> frozenset[Any]:
    members = list(key)
    plain = list(map(plain_key, members))
    return key if all(map(_is, plain, members)) else frozenset(plain)


def _is(one: object, other: object) -> bool:
    return one is other


_SCALARS = (np.bool_, np.float16, np.float32, np.float64, np.str_, np.bytes_)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_PLAIN_KEYS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((str, int, bytes, date, timedelta, type(None)), _itself),
    bool: int,
    float: _of_float,
    Decimal: _of_decimal,
    datetime: _of_moment,
    tuple: _of_tuple,
    frozenset: _of_set,
    **dict.fromkeys((*_SCALARS, *_INTEGERS), lambda key: plain_key(key.item())),
}
