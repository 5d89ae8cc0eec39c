"""Windows of local days, weeks and months: [RANGE 1 DAY TIME ZONE 'America/New_York']."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar, NoReturn

from tidegate.calendar.duration import Duration, Months, duration_text, duration_us
from tidegate.calendar.local_time import UNITS, check_zone
from tidegate.calendar.microsecond import DAY_US, UNITS_US
from tidegate.errors import QueryError
from tidegate.query.window.window import Use, Window

_WEEK_US = UNITS_US["week"]
_WEEK = ("week", _WEEK_US)
_MONDAY_US = 4 * DAY_US
"""The first Monday after the epoch."""


@dataclass(frozen=True)
class CalendarWindow(Window):
    """Windows of `length` local days, weeks or months, a new one every `slide` of them.

    They begin `offset_us` after local midnight. SQL writes them as RANGE with a TIME ZONE.
    """

    word: ClassVar = "RANGE"
    parts: ClassVar = ()
    argument: ClassVar = "range"
    refusals: ClassVar = {
        Use.SHED: "is for windows of one length; days and months of a time zone differ",
    }
    event_offset_us: ClassVar = -1

    unit: str
    length: int
    slide: int
    offset_us: int
    time_zone: str

    @classmethod
    def of(
        cls,
        size: Duration,
        slide: Duration | None = None,
        offset: Duration | None = None,
        time_zone: str = "UTC",
    ) -> CalendarWindow:
        return cls.written(*lengths_of(size, slide, offset), time_zone)

    @classmethod
    def written(
        cls,
        range_us: int | Months,
        slide_us: int | None = None,
        offset_us: int | None = None,
        time_zone: str = "UTC",
    ) -> CalendarWindow:
        zone = check_zone(time_zone, "TIME ZONE")
        if isinstance(range_us, Months):
            if slide_us is not None:
                raise QueryError(
                    "window",
                    "months follow each other, so they have no SLIDE",
                    f"RANGE {range_us} SLIDE {duration_text(slide_us)}",
                    "Leave SLIDE out.",
                )
            _check_length(range_us.count, str(range_us))
            return cls("month", range_us.count, range_us.count, offset_us or 0, zone)
        step_us = range_us if slide_us is None else slide_us
        for word, length_us in (("RANGE", range_us), ("SLIDE", step_us)):
            _check_length(length_us, duration_text(length_us), word)
            if length_us % DAY_US:
                raise QueryError(
                    "window",
                    f"{word} with a TIME ZONE must be whole days, weeks or months",
                    duration_text(length_us),
                    "Write it in DAYS, or leave TIME ZONE out: an hour is the same in all zones.",
                )
        if step_us > range_us:
            raise QueryError(
                "window",
                "SLIDE must not be longer than RANGE",
                f"RANGE {duration_text(range_us)} SLIDE {duration_text(step_us)}",
                "Tuples between the windows would be lost; filter them with WHERE instead.",
            )
        unit, each_us = ("day", DAY_US) if range_us % _WEEK_US or step_us % _WEEK_US else _WEEK
        return cls(unit, range_us // each_us, step_us // each_us, offset_us or 0, zone)

    @classmethod
    def side(cls, *lengths: Any, **parts: Any) -> NoReturn:
        raise no_alignment(cls.written(*lengths, **parts))

    @property
    def reach_us(self) -> int:
        return self.length * UNITS[self.unit].most_us + DAY_US

    def holds_mark(self, every_us: int) -> bool:
        if self.time_zone != "UTC" or self.unit == "month":
            return True
        each_us = UNITS_US[self.unit]
        offset_us = self.offset_us + (_MONDAY_US if self.unit == "week" else 0)
        return mark_inside(self.length * each_us, self.slide * each_us, offset_us, every_us)

    def __str__(self) -> str:
        text = f"RANGE {_counted(self.length, self.unit)}"
        text += "" if self.slide == self.length else f" SLIDE {_counted(self.slide, self.unit)}"
        text += f" OFFSET {duration_text(self.offset_us)}" if self.offset_us else ""
        return f"{text} TIME ZONE '{self.time_zone}'"


def lengths_of(
    size: Duration, slide: Duration | None, offset: Duration | None
) -> tuple[int | Months, int | None, int | None]:
    """The range, slide and offset of a window from a program's arguments."""
    months = Months.read(size) if isinstance(size, str) else None
    return (
        duration_us(size, "window range") if months is None else months,
        None if slide is None else duration_us(slide, "window slide"),
        None if offset is None else duration_us(offset, "window offset"),
    )


def mark_inside(range_us: int, slide_us: int, offset_us: int, every_us: int) -> bool:
    """Whether a multiple of `every_us` lies inside a window, after its start and before its end.

    Between starts and marks there are all distances that have the remainder of the offset, by the
    greatest divisor that both steps have in common.
    """
    step_us = gcd(slide_us, every_us)
    return step_us - offset_us % step_us < range_us


def no_alignment(window: object) -> QueryError:
    """The error for an aligned window in a join."""
    return QueryError(
        "JOIN",
        "the window of a join moves with every tuple: it has a length, and no alignment",
        f"[{window}]",
        "Leave OFFSET and TIME ZONE out, and write days for months.",
    )


def _check_length(length: int, text: str, word: str = "RANGE") -> None:
    if length <= 0:
        raise QueryError("window", f"{word} must be longer than zero", text)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
