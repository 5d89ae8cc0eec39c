"""Windows of local days, weeks or months as panes, which are not all of one length."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.local_time import UNITS, LocalPeriods
from tidegate.microsecond import DAY_US
from tidegate.operate.aggregate.pane_window import WindowPanes
from tidegate.operate.kernels.order import Ints


@dataclass(frozen=True)
class CalendarPanes(WindowPanes):
    """Windows of `length` periods of a calendar, a new one every `slide`; `text` as SQL has it.

    A pane is as many periods as divide both.
    """

    length: int
    slide: int
    periods_of: LocalPeriods
    text: str

    def __str__(self) -> str:
        return self.text

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
