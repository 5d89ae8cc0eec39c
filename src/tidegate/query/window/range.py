"""Windows of time: [RANGE 15 MINUTES SLIDE 5 MINUTES]; in a join [RANGE 5 MINUTES]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.calendar.duration import Duration, Months, duration_text, window_text
from tidegate.errors import QueryError
from tidegate.query.grammar import DurationValue, RangeValue, SyntaxPart, TextValue
from tidegate.query.window.calendar import CalendarWindow, lengths_of, mark_inside, no_alignment
from tidegate.query.window.window import JoinWindow, Window, slides


@dataclass(frozen=True)
class TimeWindow(Window):
    """Windows [k*slide, k*slide + range) for every integer k, aligned at the Unix epoch.

    They begin `offset_us` later, stored modulo `slide_us`. The event time of a window's rows is its
    last instant, so that a coarser window over them contains it.
    """

    word: ClassVar = "RANGE"
    argument: ClassVar = "range"
    options: ClassVar = ("slide", "offset", "time_zone")
    parts: ClassVar = (
        SyntaxPart("range_us", RangeValue()),
        SyntaxPart("slide_us", DurationValue(), "SLIDE"),
        SyntaxPart("offset_us", DurationValue(), "OFFSET"),
        SyntaxPart("time_zone", TextValue(), "TIME ZONE"),
    )
    event_offset_us: ClassVar = -1

    range_us: int
    slide_us: int
    offset_us: int = 0

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

        # Windows that are the same are then equal, and have one text in the fingerprint.
        object.__setattr__(self, "offset_us", self.offset_us % self.slide_us)

    @classmethod
    def of(
        cls,
        size: Duration,
        slide: Duration | None = None,
        offset: Duration | None = None,
        time_zone: str | None = None,
    ) -> Window:
        return cls.written(*lengths_of(size, slide, offset), time_zone)

    @classmethod
    def written(
        cls,
        range_us: int | Months,
        slide_us: int | None = None,
        offset_us: int | None = None,
        time_zone: str | None = None,
    ) -> Window:
        if time_zone is not None:
            return CalendarWindow.written(range_us, slide_us, offset_us, time_zone)
        if isinstance(range_us, Months):
            raise QueryError(
                "window",
                "a month has the length that a calendar says, so it needs a TIME ZONE",
                f"RANGE {range_us}",
                f"Write [RANGE {str(range_us).upper()} TIME ZONE 'UTC'], or another zone.",
            )
        return cls(range_us, range_us if slide_us is None else slide_us, offset_us or 0)

    @classmethod
    def side(
        cls,
        range_us: int | Months,
        slide_us: int | None = None,
        offset_us: int | None = None,
        time_zone: str | None = None,
    ) -> Distance:
        if offset_us is not None or time_zone is not None or isinstance(range_us, Months):
            raise no_alignment(cls.written(range_us, slide_us, offset_us, time_zone))
        if slide_us is not None:
            cls(range_us, slide_us)
            raise slides("RANGE", duration_text(range_us), duration_text(slide_us))
        return Distance(range_us)

    @property
    def reach_us(self) -> int:
        return self.range_us

    def holds_mark(self, every_us: int) -> bool:
        return mark_inside(self.range_us, self.slide_us, self.offset_us, every_us)

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us, self.offset_us)


@dataclass(frozen=True)
class Distance(JoinWindow):
    """How much earlier than its partner a tuple of a join may be; zero is the same instant."""

    range_us: int

    def __post_init__(self) -> None:
        if self.range_us < 0:
            raise QueryError("window", "RANGE must not be negative", duration_text(self.range_us))

    @property
    def extent(self) -> tuple[int, None]:
        return self.range_us, None

    def __str__(self) -> str:
        return f"RANGE {duration_text(self.range_us)}"
