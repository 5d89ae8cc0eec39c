"""Windows of time: [RANGE 15 MINUTES SLIDE 5 MINUTES], and [RANGE 5 MINUTES] of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.duration import Duration, duration_text, duration_us, window_text
from tidegate.errors import QueryError
from tidegate.query.grammar import DurationValue, SyntaxPart
from tidegate.query.window.window import JoinWindow, Window, slides


@dataclass(frozen=True)
class TimeWindow(Window):
    """Windows [k*slide, k*slide + range) for every whole k, aligned at the Unix epoch.

    A window happens in its last instant, so that a coarser one over it takes it in.
    """

    word: ClassVar = "RANGE"
    argument: ClassVar = "range"
    parts: ClassVar = (
        SyntaxPart("range_us", DurationValue()),
        SyntaxPart("slide_us", DurationValue(), "SLIDE"),
    )
    event_offset_us: ClassVar = -1

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

    @classmethod
    def of(cls, size: Duration, slide: Duration | None = None) -> TimeWindow:
        range_us = duration_us(size, "window range")
        return cls.written(range_us, None if slide is None else duration_us(slide, "window slide"))

    @classmethod
    def written(cls, range_us: int, slide_us: int | None = None) -> TimeWindow:
        return cls(range_us, range_us if slide_us is None else slide_us)

    @classmethod
    def side(cls, range_us: int, slide_us: int | None = None) -> Distance:
        if slide_us is not None:
            window = cls(range_us, slide_us)
            if slide_us != range_us:
                raise slides(window)
        return Distance(range_us)

    @property
    def reach_us(self) -> int:
        return self.range_us

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us)


@dataclass(frozen=True)
class Distance(JoinWindow):
    """How much earlier a tuple of a join may be than its partner; zero is the same instant."""

    range_us: int

    def __post_init__(self) -> None:
        if self.range_us < 0:
            raise QueryError("window", "RANGE must not be negative", duration_text(self.range_us))

    @property
    def extent(self) -> tuple[int, None]:
        return self.range_us, None

    def __str__(self) -> str:
        return f"RANGE {duration_text(self.range_us)}"
