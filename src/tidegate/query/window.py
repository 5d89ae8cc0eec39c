"""The windows that a query can ask for: of time, of tuples, and of the sides of a join."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.duration import Duration, duration_text, duration_us, rows_text, window_text
from tidegate.errors import QueryError

MOST_ROWS = 10**12
"""Tuples in a window: more than any machine holds, and few enough to count with."""


@dataclass(frozen=True)
class TimeWindow:
    """Windows [k*slide, k*slide + range) for every whole k, aligned at the Unix epoch."""

    range_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if self.range_us <= 0:
            raise QueryError(
                "window", "RANGE must be longer than zero", duration_text(self.range_us)
            )
        if self.slide_us <= 0:
            raise QueryError(
                "window", "SLIDE must be longer than zero", duration_text(self.slide_us)
            )
        if self.slide_us > self.range_us:
            raise QueryError(
                "window",
                "SLIDE must not be longer than RANGE",
                f"RANGE {duration_text(self.range_us)} SLIDE {duration_text(self.slide_us)}",
                "Tuples between the windows would be lost; filter them with WHERE instead.",
            )

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us)


@dataclass(frozen=True)
class TupleWindow:
    """The last `rows` tuples of a group, emitted when held, then the `slide` oldest dropped."""

    rows: int
    slide: int

    def __post_init__(self) -> None:
        if self.rows <= 0:
            raise QueryError("window", "ROWS must be at least 1", str(self.rows))
        if self.rows > MOST_ROWS:
            raise QueryError("window", f"ROWS must be at most {MOST_ROWS:,}", f"{self.rows:,}")
        if not 0 < self.slide <= self.rows:
            raise QueryError(
                "window",
                "SLIDE must be at least 1 and at most ROWS",
                f"ROWS {self.rows} SLIDE {self.slide}",
            )

    def __str__(self) -> str:
        return rows_text(self.rows, self.slide)


@dataclass(frozen=True)
class Distance:
    """How much earlier a tuple of a join may be than its partner; zero is the same instant."""

    range_us: int

    def __post_init__(self) -> None:
        if self.range_us < 0:
            raise QueryError("window", "RANGE must not be negative", duration_text(self.range_us))

    def __str__(self) -> str:
        return f"RANGE {duration_text(self.range_us)}"


Window = TimeWindow | TupleWindow


def read_window(range: Duration | None, slide: Duration | None, rows: int | None) -> Window:
    """The window a program asks for: a length of time, or a number of tuples; it tumbles unless
    `slide` says otherwise."""
    if (range is None) == (rows is None):
        raise QueryError(
            "window",
            "needs a length of time, or a number of tuples",
            "neither" if range is None else "both",
            'Write for example window("15 minutes"), or window(rows=100).',
        )
    if range is None:
        count = whole_rows(rows, "window rows")
        return TupleWindow(count, count if slide is None else whole_rows(slide, "window slide"))
    range_us = duration_us(range, "window range")
    return TimeWindow(range_us, range_us if slide is None else duration_us(slide, "window slide"))


def whole_rows(value: object, where: str) -> int:
    """A number of tuples; anything but an int is refused."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(where, "needs a whole number of tuples", repr(value))
    return value


JoinWindow = Distance | TupleWindow
"""The window of one side of a join: it moves with every tuple."""
