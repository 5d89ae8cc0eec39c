"""Restricts a source of a history or of a topic to its rows within a span of event time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import time_text
from tidegate.connector import Bools, Int64s, OuterReader, Reader, Rows, Source
from tidegate.errors import SourceError


class TimeSpan(NamedTuple):
    """Event times [low_us, high_us). At most one end is finite: that of UNTIL."""

    low_us: int = MIN_US
    high_us: int = MAX_US

    @property
    def until_us(self) -> int | None:
        """The finite end; None for all times."""
        finite = [end for end in self if end not in (MIN_US, MAX_US)]
        return finite[0] if finite else None

    def excludes(self, times: Int64s, valid: Bools) -> Bools:
        """Which rows are outside. Rows without a time are inside, and will be rejected."""
        return valid & ((times < self.low_us) | (times >= self.high_us))


@dataclass(frozen=True)
class SelectedReader(OuterReader):
    """The rows of another reader without the positions `left_out`, which are ascending."""

    left_out: Int64s

    def read(self, columns: Sequence[str]) -> Rows:
        rows = self.inner.read(columns)
        kept = np.flatnonzero(~np.isin(rows.seq, self.left_out))
        hidden = set(self.left_out.tolist()) if rows.rejects else set()
        rejects = tuple(r for r in rows.rejects if r.seq not in hidden)
        return Rows(rows.table.take(kept), rows.seq[kept], rejects)


class LegSource(Source):
    """Another source, in which a row outside a span becomes a position without a row.

    `begin_at` is called where no earlier run has read from the source. Grows with the excluded
    positions that were looked at and that no batch has passed yet.
    """

    def __init__(
        self,
        inner: Source,
        span: TimeSpan,
        begin_at: Callable[[LegSource], None] = lambda leg: None,
    ) -> None:
        self.inner = inner
        self.id, self.schema, self.arrivals = inner.id, inner.schema, inner.arrivals
        self.first, self.pieced = inner.first, inner.pieced
        self._span, self._begin_at = span, begin_at
        self._looked = (0, 0)
        self._outside: list[Int64s] = []

    def begin(self) -> None:
        self._begin_at(self)
        self.first = self.inner.first

    def start(self, position: int | None) -> None:
        self.inner.start(position)
        self.first = self.inner.first

    def extend(self, rows: int) -> int:
        return self.inner.extend(rows)

    def ended(self) -> bool:
        return self.inner.ended()

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        times, valid = self.inner.times(start, stop)
        if self._span.until_us is None:
            return times, valid
        excluded = self._span.excludes(times, valid)
        low, high = self._looked
        if start > high or stop < low:
            self._outside, low, high = [], start, stop
        self._looked = min(low, start), max(high, stop)
        if excluded.any():
            self._outside.append(start + np.flatnonzero(excluded))
            valid = valid & ~excluded
        return times, valid

    def reader(self, start: int, stop: int) -> Reader:
        inner = self.inner.reader(start, stop)
        if self._span.until_us is None:
            return inner
        left_out = self._left_out(start, stop)
        self._outside = [part for part in self._outside if part[-1] >= start]
        self._looked = max(start, self._looked[0]), self._looked[1]
        return SelectedReader(inner, start, stop, left_out) if len(left_out) else inner

    def absent(self, start: int, stop: int) -> int:
        return self.inner.absent(start, stop) + self.outside(start, stop)

    def outside(self, start: int, stop: int) -> int:
        return len(self._left_out(start, stop))

    def breaks(self, start: int, stop: int) -> Sequence[int] | None:
        return self.inner.breaks(start, stop)

    def piece_end(self, position: int) -> int:
        return self.inner.piece_end(position)

    def low_us(self, position: int) -> int:
        return self.inner.low_us(position)

    def extent(self, position: int) -> tuple[int, int, str] | None:
        return self.inner.extent(position)

    def untaken(self, position: int) -> tuple[int, str] | None:
        return self.inner.untaken(position)

    def place_of(self, position: int) -> Mapping[str, Any]:
        return self.inner.place_of(position)

    def answered(self, position: int) -> None:
        self.inner.answered(position)

    def mark(self, position: int) -> Mapping[str, Any] | None:
        """The mark of the source itself, with the span, which must not change either."""
        return {"until_us": self._span.until_us, "of": self.inner.mark(position)}

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        began, now = saved["until_us"], self._span.until_us
        if began != now:
            raise SourceError(
                self.id,
                f"was read {_until(began)} by this checkpoint",
                _until(now),
                "Write it as it was, or start from an empty checkpoint.",
            )
        if saved["of"] is not None:
            self.inner.check(saved["of"], position, again)
        self.first = self.inner.first

    def holds(self, saved: Mapping[str, Any]) -> bool:
        return saved["of"] is None or self.inner.holds(saved["of"])

    def confirm(self) -> None:
        self.inner.confirm()

    def _left_out(self, start: int, stop: int) -> Int64s:
        """The positions of a range whose rows are outside the span."""
        if self._span.until_us is None:
            return np.empty(0, np.int64)
        if start < self._looked[0] or stop > self._looked[1]:
            self.times(start, stop)
        found = [part[(part >= start) & (part < stop)] for part in self._outside]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _until(time_us: int | None) -> str:
    return "without UNTIL" if time_us is None else f"with UNTIL {time_text(time_us)}"
