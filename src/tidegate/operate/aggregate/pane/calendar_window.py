"""Windows of local days, weeks or months as panes; these differ in length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidegate.calendar.duration import duration_text
from tidegate.calendar.local_time import UNITS, LocalPeriods
from tidegate.calendar.microsecond import DAY_US
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.kernels.order import Ints, Mask


@dataclass(frozen=True)
class CalendarPanes(WindowPanes):
    """Windows of `length` periods of a calendar, a new one every `slide` periods.

    `text` is the window as SQL writes it. A pane is gcd(length, slide) periods.
    """

    length: int
    slide: int
    periods_of: LocalPeriods
    text: str

    def __str__(self) -> str:
        return self.text

    def marked(self, every_us: int) -> MarkedCalendar:
        return MarkedCalendar(self.length, self.slide, self.periods_of, self.text, every_us)

    @property
    def _each(self) -> int:
        return math.gcd(self.length, self.slide)

    @property
    def panes(self) -> int:
        return self.length // self._each

    @property
    def step(self) -> int:
        return self.slide // self._each

    def numbers(self, times: Ints) -> Ints:
        return self.periods_of.numbers(times) // self._each

    def begins(self, panes: Ints) -> Ints:
        return self.periods_of.begins(panes * self._each)

    @property
    def reach_us(self) -> int:
        return self.length * UNITS[self.periods_of.unit].most_us + DAY_US

    @property
    def lengths_s(self) -> tuple[float, float]:
        usual_s = UNITS[self.periods_of.unit].usual_us / 1e6
        return self.length * usual_s, self.slide * usual_s

    @property
    def pane_text(self) -> str:
        count, unit = self._each, self.periods_of.unit
        return f"{count} {unit}{'s' if count > 1 else ''}"

    @property
    def line(self) -> str:
        return f"window {self.text}"


@dataclass(frozen=True)
class MarkedCalendar(CalendarPanes):
    """The same windows, with panes that also begin at each multiple of `every_us`.

    Panes are numbered by arithmetic, so every run of periods gets as many numbers as the longest
    one needs. In shorter runs the last panes have no length.
    """

    every_us: int = DAY_US

    @property
    def _most(self) -> int:
        """How many panes a run of periods has; one may begin and one may end between marks."""
        longest_us = self._each * UNITS[self.periods_of.unit].most_us + DAY_US
        return longest_us // self.every_us + 2

    @property
    def panes(self) -> int:
        return super().panes * self._most

    @property
    def step(self) -> int:
        return super().step * self._most

    def numbers(self, times: Ints) -> Ints:
        run = super().numbers(times)
        return run * self._most + times // self.every_us - super().begins(run) // self.every_us

    def begins(self, panes: Ints) -> Ints:
        run, place = panes // self._most, panes % self._most
        begin = super().begins(run)
        mark = (begin // self.every_us + place) * self.every_us
        return np.where(place == 0, begin, np.minimum(mark, super().begins(run + 1)))

    def panes_of(self, end_us: int) -> tuple[int, int]:
        after = (self.pane_at(end_us - 1) // self._most + 1) * self._most
        return after - self.panes, after

    def apart(self, ends: Ints) -> Mask:
        first = (self.numbers(ends - 1) // self._most + 1) * self._most - self.panes
        found: Mask = first % (self.windows_of_tuple * self.step) == 0
        return found

    @property
    def pane_text(self) -> str:
        return f"{super().pane_text} and {duration_text(self.every_us)}, whichever ends first"

    @property
    def line(self) -> str:
        return f"{super().line} every {self.every_us}"
