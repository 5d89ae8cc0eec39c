"""Reads dates and times in a user's form, given as a datetime pattern of Spark.

A pattern such as `dd.MM.yyyy HH:mm` becomes one regular expression, by which Arrow splits a whole
column. The parts are then combined column by column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.calendar.microsecond import DAY_US
from tidegate.errors import OptionError
from tidegate.schema import TIME

_MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _names(names: tuple[str, ...], letters: int) -> str:
    words = [n[:3] if letters < 4 else n for n in names]
    return f"(?i:{'|'.join(words)})"


_ZONE = r"Z|[+-]\d\d:?(?:\d\d)?"
_DIGITS = {1: r"\d{1,2}", 2: r"\d{2}"}
_LETTERS = {
    "y": ("year", {1: r"\d{4}", 2: r"\d{2}", 4: r"\d{4}"}),
    "u": ("year", {1: r"\d{4}", 4: r"\d{4}"}),
    "M": ("month", _DIGITS | {3: _names(_MONTHS, 3), 4: _names(_MONTHS, 4)}),
    "d": ("day", _DIGITS),
    "H": ("hour", _DIGITS),
    "h": ("half", _DIGITS),
    "a": ("noon", {1: r"(?i:am|pm)"}),
    "m": ("minute", _DIGITS),
    "s": ("second", _DIGITS),
    "S": ("fraction", {n: rf"\d{{1,{n}}}" for n in range(1, 10)}),
    "E": ("weekday", {n: _names(_DAYS, n) for n in range(1, 5)}),
    "X": ("zone", dict.fromkeys(range(1, 4), _ZONE)),
    "x": ("zone", dict.fromkeys(range(1, 4), _ZONE)),
    "Z": ("zone", dict.fromkeys(range(1, 4), _ZONE)),
}
"""For each letter the part of a time, and the expression for each number of repetitions."""

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_LIMITS = {"month": (1, 12), "hour": (0, 23), "half": (1, 12), "minute": (0, 59), "second": (0, 59)}

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Pattern:
    """One of Spark's datetime patterns."""

    text: str

    @staticmethod
    def parse(text: str, where: str) -> Pattern:
        """Check a pattern; one that does not say a day is refused."""
        if "%" in text:
            raise OptionError(
                where,
                "must be a pattern as Spark has them",
                repr(text),
                "Write for example yyyy-MM-dd HH:mm:ss.",
            )
        try:
            found = re.compile(_expression(text)).groupindex
        except (KeyError, re.error) as error:
            raise OptionError(
                where,
                "must be made of y M d E H h a m s S X, each once, and other characters in quotes",
                f"{text!r} ({error})",
                "Write for example dd/MM/yyyy HH:mm:ss.",
            ) from None
        if not {"year", "month", "day"} <= set(found):
            raise OptionError(
                where, "must have year, month and day", repr(text), "Write for example yyyy-MM-dd."
            )
        if ("half" in found) != ("noon" in found):
            raise OptionError(where, "h and a must be there together", repr(text), "Write HH.")
        return Pattern(text)

    def __repr__(self) -> str:
        return repr(self.text)

    def times(self, text: pa.Array) -> pa.Array:
        """Texts as TIME, truncated to microseconds; without a zone UTC, NULL if it is no time."""
        parts, valid = self._parts(text)
        # `h` counts 12, 1, ..., 11; each part is 0 where the pattern does not have it.
        hours = parts["hour"] + parts["half"] % 12 + 12 * parts["noon"]
        seconds = (hours * 60 + parts["minute"]) * 60 + parts["second"]
        numbers = parts["days"] * DAY_US + seconds * 1_000_000 + parts["fraction"] - parts["zone"]
        return pa.array(numbers, pa.int64(), mask=~valid).view(TIME)

    def dates(self, text: pa.Array) -> pa.Array:
        """Texts as dates; NULL where one is none."""
        parts, valid = self._parts(text)
        return pa.array(parts["days"].astype(np.int32), pa.int32(), mask=~valid).view(pa.date32())

    def _parts(self, text: pa.Array) -> tuple[dict[str, Int64s], NDArray[np.bool_]]:
        """The parts of all texts as int64, and which texts match and are valid times."""
        trimmed = pc.utf8_trim(text, " \t")
        found = pc.extract_regex(trimmed, _expression(self.text))
        valid = found.is_valid().to_numpy(zero_copy_only=False)
        names = [f.name for f in found.type]
        none = np.zeros(len(text), np.int64)
        parts = dict.fromkeys(
            ("hour", "half", "noon", "minute", "second", "fraction", "zone"), none
        )
        for name in names:
            parts[name] = _number(name, found.field(name))
        if "yy" in re.sub("y{3,}", "", self.text):
            parts["year"] = parts["year"] + 2000
        for name, (low, high) in _LIMITS.items():
            if name in names:
                valid = valid & (parts[name] >= low) & (parts[name] <= high)
        months = (parts["year"] - 1970) * 12 + parts["month"] - 1
        starts, ends = (_days(months + more) for more in (0, 1))
        valid = valid & (parts["day"] >= 1) & (parts["day"] <= ends - starts)
        parts["days"] = starts + parts["day"] - 1
        return parts, valid


@lru_cache
def _expression(text: str) -> str:
    """The regular expression of a pattern; KeyError for letters that mean nothing here."""
    found = []
    for token in _TOKEN.finditer(text):
        written = token[0]
        if token[2]:
            name, forms = _LETTERS[token[2]]
            found.append(f"(?P<{name}>{forms[len(written)]})")
        elif written.startswith("'") and len(written) > 1:
            found.append(re.escape(token[1].replace("''", "'") or "'"))
        elif written in "[]":
            found.append("(?:" if written == "[" else ")?")
        else:
            found.append(re.escape(written))
    return f"^{''.join(found)}$"


def _number(name: str, cells: pa.Array) -> Int64s:
    """One part of times; 0 where there is none."""
    cells = cells.fill_null("")
    if name == "month" and not pc.all(pc.utf8_is_digit(cells), min_count=0).as_py():
        short = pc.utf8_lower(pc.utf8_slice_codeunits(cells, 0, 3))
        known = pa.array([m[:3].lower() for m in _MONTHS])
        places = pc.index_in(short, known).fill_null(-1).to_numpy(zero_copy_only=False) + 1
        digits = pc.if_else(pc.utf8_is_digit(cells), cells, "0").cast(pa.int64())
        return np.asarray(places + digits.to_numpy(zero_copy_only=False), np.int64)
    if name == "noon":
        later = pc.equal(pc.utf8_lower(cells), "pm")
        return np.asarray(later.to_numpy(zero_copy_only=False), np.int64)
    if name == "weekday":
        return np.zeros(len(cells), np.int64)
    if name == "zone":
        digits = pc.replace_substring_regex(cells, r"[^0-9]", "")
        offset = _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 4, "0"), 0, 4))
        west = pc.starts_with(cells, "-").to_numpy(zero_copy_only=False)
        offset_us = (offset // 100 * 60 + offset % 100) * 60_000_000
        return np.asarray(np.where(west, -offset_us, offset_us), np.int64)
    if name == "fraction":
        return _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(cells, 6, "0"), 0, 6))
    return _whole(cells)


def _whole(digits: pa.Array) -> Int64s:
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _days(months: Int64s) -> Int64s:
    """Days since 1970 at the starts of months since then."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
