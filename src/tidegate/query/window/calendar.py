"""Windows of local days, weeks and months: [RANGE 1 DAY TIME ZONE 'America/New_York']."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from tidegate.duration import Months, duration_text
from tidegate.errors import QueryError
from tidegate.local_time import UNITS, check_zone
from tidegate.microsecond import DAY_US, UNITS_US
from tidegate.query.window.window import Use, Window

_WEEK_US = UNITS_US["week"]


@dataclass(frozen=True)
class CalendarWindow(Window):
    """Windows of `length` local days, weeks or months, a new one every `slide` of them.

    They begin `offset_us` after midnight on the clocks of the zone. It is what RANGE with a TIME
    ZONE becomes, and is written as that: see `calendar_window`.
    """

    word: ClassVar = "RANGE"
    parts: ClassVar = ()
    argument: ClassVar = "range"
    refusals: ClassVar = {
        Use.SHED: "is for windows of one length; days and months of a time zone differ"
    }
    event_offset_us: ClassVar = -1

    unit: str
    length: int
    slide: int
    offset_us: int
    time_zone: str

    @classmethod
    def of(cls, *size: Any, **options: Any) -> NoReturn:
        raise NotImplementedError("RANGE with a TIME ZONE makes it")

    written = side = of

    @property
    def reach_us(self) -> int:
        return self.length * UNITS[self.unit].most_us + DAY_US

    def __str__(self) -> str:
        text = f"RANGE {_counted(self.length, self.unit)}"
        text += "" if self.slide == self.length else f" SLIDE {_counted(self.slide, self.unit)}"
        text += f" OFFSET {duration_text(self.offset_us)}" if self.offset_us else ""
        return f"{text} TIME ZONE '{self.time_zone}'"


def calendar_window(
    range_us: int | Months, slide_us: int | None, offset_us: int, time_zone: str
) -> CalendarWindow:
    """Windows that follow the clocks of a zone: whole days, weeks from Monday on, or months."""
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
        return CalendarWindow("month", range_us.count, range_us.count, offset_us, zone)
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
    return CalendarWindow(unit, range_us // each_us, step_us // each_us, offset_us, zone)


_WEEK = ("week", _WEEK_US)


def _check_length(length: int, text: str, word: str = "RANGE") -> None:
    if length <= 0:
        raise QueryError("window", f"{word} must be longer than zero", text)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
