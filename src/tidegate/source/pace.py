"""How many rows of a live stream come in each second: constant, or as a file says.

A pace is a function from seconds to rows that never decreases, with its inverse. Arrivals of
generated rows follow it, and so do their event times with a file.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import SourceError, near
from tidegate.storage import disk

Floats = NDArray[np.float64]

TIME = "t"
"""The column with the second at which a rate begins."""

_ROUNDING = 1e-6
"""By how much rounding may bring sums of rates below a whole row."""


class Pacing(Protocol):
    """When the rows of a stream come, from when it begins."""

    @property
    def rate(self) -> float:
        """Rows a second, on average."""

    @property
    def rows(self) -> float:
        """How many rows come in all; infinite where there is no end."""

    def come(self, first: int, seconds: float) -> int:
        """How many rows there are, so many seconds after there were `first`."""

    def seconds(self, first: int, rows: Floats) -> Floats:
        """The seconds from when there were `first` rows until there are `rows`, not only whole."""


@dataclass(frozen=True)
class EvenPace:
    """The same number of rows in every second."""

    rate: float
    rows: float = math.inf

    def __str__(self) -> str:
        return f"{self.rate:g}"

    def come(self, first: int, seconds: float) -> int:
        return first + int(seconds * self.rate)

    def seconds(self, first: int, rows: Floats) -> Floats:
        found: Floats = (rows - first) / self.rate
        return found


@dataclass(frozen=True)
class TracedPace:
    """Rates that are constant within intervals; it ends with the last interval.

    `times` has the beginning of each interval, in seconds from the first, then the end of the last.
    `rates` has the rows per second of each. Grows with the lines of its file.
    """

    name: str
    times: tuple[float, ...]
    rates: tuple[float, ...]

    def __str__(self) -> str:
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what is cached: other processes compute it again."""
        return {"name": self.name, "times": self.times, "rates": self.rates}

    @property
    def rate(self) -> float:
        return float(self._come[-1]) / self.times[-1]

    @property
    def rows(self) -> float:
        return float(math.floor(self._come[-1] + _ROUNDING))

    def come(self, first: int, seconds: float) -> int:
        at = float(self.seconds_of(np.array([float(first)]))[0]) + seconds
        come = math.floor(np.interp(at, self.times, self._come) + _ROUNDING)
        return max(come, first)

    def seconds(self, first: int, rows: Floats) -> Floats:
        found: Floats = self.seconds_of(rows) - self.seconds_of(np.array([float(first)]))
        return found

    def seconds_of(self, rows: Floats) -> Floats:
        """From the first interval on; intervals without rows are never looked into."""
        which = np.maximum(np.searchsorted(self._come, rows, "left") - 1, self._first)
        which = np.minimum(which, self._last)
        begins, ends = np.array(self.times)[which], np.array(self.times)[which + 1]
        past = (rows - self._come[which]) / np.array(self.rates)[which]
        found: Floats = np.clip(begins + past, begins, ends)
        return found

    @cached_property
    def _come(self) -> Floats:
        """How many rows have come at each of the times."""
        widths = np.diff(np.array(self.times))
        return np.concatenate([[0.0], np.cumsum(widths * np.array(self.rates))])

    @property
    def _first(self) -> int:
        """The first interval that has rows."""
        return next(i for i, rate in enumerate(self.rates) if rate)

    @property
    def _last(self) -> int:
        """The last of them."""
        return next(i for i in reversed(range(len(self.rates))) if self.rates[i])


def read_pace(path: str, column: str | None, where: str) -> TracedPace:
    """Read a pace from a CSV file: a column `t` of seconds, and rates in tuples per second.

    Without `column` there must be only one beside `t`. The last rate lasts as long as the one
    before it, or a second where it is the only one. SourceError where the file is not a pace.
    """
    header, *lines = _lines(path, where)
    of = f"{where}, pace {path}"
    chosen = _column(header, column, of)
    table = [_numbers(line, number, header, chosen, of) for number, line in enumerate(lines, 2)]
    if not table:
        raise SourceError(of, "needs a line with a rate", "none", "Write for example 0,100.")
    for number, ((before, _), (after, _)) in enumerate(pairwise(table), 3):
        if after <= before:
            got = f"{after:g} after {before:g} in line {number}"
            raise SourceError(of, f"{TIME} must grow from line to line", got, "Sort the file.")
    if not any(rate for _, rate in table):
        raise SourceError(of, "needs a rate above 0", "none", "Change one of the rates.")
    begins = [t - table[0][0] for t, _ in table]
    width = begins[-1] - begins[-2] if len(begins) > 1 else 1.0
    return TracedPace(path, (*begins, begins[-1] + width), tuple(rate for _, rate in table))


def _lines(path: str, where: str) -> list[list[str]]:
    try:
        with disk.current().open(path) as file:
            text = file.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise SourceError(
            where,
            "pace must be a number above 0, or a CSV file with rates over time",
            f"{path}: {got}",
            "Write for example pace=1000, or the path of a file with the columns t and rate.",
        ) from None
    lines = [[c.strip() for c in line] for line in csv.reader(io.StringIO(text)) if line]
    return lines or [[]]


def _column(header: list[str], column: str | None, of: str) -> int:
    others = [name for name in header if name != TIME]
    if TIME not in header or not others:
        got = ", ".join(header) or "no line"
        raise SourceError(of, f"needs a header with {TIME} and a column of rates", got)
    if column is None and len(others) > 1:
        remedy = f"Say which, as column={others[0]}."
        raise SourceError(of, "one column of rates must be chosen", ", ".join(others), remedy)
    if column is not None and column not in others:
        raise SourceError(of, "column must be one of the file", column, near(column, others))
    return header.index(column or others[0])


def _numbers(
    line: list[str], number: int, header: list[str], chosen: int, of: str
) -> tuple[float, float]:
    """The time and the rate of a line."""
    found = []
    for place, least in ((header.index(TIME), -math.inf), (chosen, 0.0)):
        text = line[place] if place < len(line) else ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least:
            wanted = "a number" if least < 0 else "a number from 0 on"
            got = f"{text!r} in line {number}"
            raise SourceError(of, f"{header[place]} must be {wanted}", got, "Change that line.")
        found.append(value)
    return found[0], found[1]
