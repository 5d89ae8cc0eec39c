"""Windows of tuples: [ROWS 100 SLIDE 10]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tidegate.calendar.duration import rows_text
from tidegate.errors import QueryError
from tidegate.query.grammar import CountValue, SyntaxPart
from tidegate.query.row_key import RowKey
from tidegate.query.window.window import JoinWindow, Use, Window, slides

MOST_ROWS = 10**12
"""The most tuples in a window: more than any machine holds, and far from overflowing a count."""


@dataclass(frozen=True)
class TupleWindow(Window, JoinWindow):
    """The last `rows` tuples of a group: a row when that many are held, then the `slide` oldest go.

    The event time of a row is that of the window's newest tuple. In a join the window moves with
    every tuple of its side.
    """

    word: ClassVar = "ROWS"
    argument: ClassVar = "rows"
    parts: ClassVar = (SyntaxPart("rows", CountValue()), SyntaxPart("slide", CountValue(), "SLIDE"))
    refusals: ClassVar = {
        Use.BOUND: "is for windows of time; those of tuples hold no more than they are given",
        Use.SHED: "is for windows of time: one of tuples counts those that would be shed",
        Use.ORDER: "a window of tuples gives one row, so there is nothing to order or to leave out",
        Use.PROCESS: "is for windows of time, whose parts can be merged",
        Use.EARLY: "is for windows of time; one of tuples is final as soon as it is full",
    }
    no_shed: ClassVar = "sides with a window of time: others count the tuples that are shed"

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

    @classmethod
    def of(cls, size: object, slide: object = None) -> TupleWindow:
        rows = whole_rows(size, "window rows")
        return cls.written(rows, None if slide is None else whole_rows(slide, "window slide"))

    @classmethod
    def written(cls, rows: int, slide: int | None = None) -> TupleWindow:
        return cls(rows, rows if slide is None else slide)

    @classmethod
    def side(cls, rows: int, slide: int | None = None) -> TupleWindow:
        window = cls.written(rows, slide)
        if slide is not None:
            raise slides("ROWS", rows, slide)
        return window

    def check_side(self) -> None:
        if self.slide != self.rows:
            raise slides("ROWS", self.rows, self.slide)

    @property
    def reach_us(self) -> int:
        return 0

    @property
    def longest_us(self) -> int | None:
        return None

    @property
    def extent(self) -> tuple[None, int]:
        return None, self.rows

    def row_key(self, keys: Sequence[str], early: bool) -> RowKey:
        return RowKey(lack="windows of tuples, which may begin and end at the same times")

    def __str__(self) -> str:
        return rows_text(self.rows, self.slide)


def whole_rows(value: object, where: str) -> int:
    """A number of tuples; raises for anything but an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(where, "needs a whole number of tuples", repr(value))
    return value
