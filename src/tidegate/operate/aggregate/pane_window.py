"""Windows of time as panes: which tuples a window has, when it is closed, what open windows need.

A **pane** is the largest piece of time that divides all windows. Panes and windows are numbered
from the Unix epoch, below zero before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.batch import MAX_US, MIN_US
from tidegate.duration import window_text
from tidegate.errors import QueryError
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.kernels.window import Cover


@dataclass(frozen=True)
class PaneWindow:
    """Windows [k * slide, k * slide + range) for every whole k."""

    range_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if not 0 < self.slide_us <= self.range_us:
            got = f"RANGE {self.range_us} SLIDE {self.slide_us} microseconds"
            raise QueryError("window", "0 < SLIDE <= RANGE is required", got)

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us)

    @property
    def pane_us(self) -> int:
        """The length of a pane: the largest that divides both range and slide."""
        return math.gcd(self.range_us, self.slide_us)

    @property
    def panes(self) -> int:
        """How many panes a window has."""
        return self.range_us // self.pane_us

    @property
    def cover(self) -> Cover:
        """Which panes each window has."""
        return Cover(self.panes, self.slide_us // self.pane_us)

    @property
    def windows_of_tuple(self) -> int:
        """In how many windows a tuple is, at most."""
        return -(-self.range_us // self.slide_us)

    @property
    def overlapping(self) -> bool:
        """Whether windows begin before the one before has ended."""
        return self.slide_us < self.range_us

    def sealed_before(self, frontier_us: int) -> int:
        """The first pane that may still get tuples; all below it can get no more."""
        return frontier_us if frontier_us in (MIN_US, MAX_US) else frontier_us // self.pane_us

    def needed_from(self, frontier_us: int) -> int:
        """The lowest pane that some window with end > frontier_us covers."""
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        window = (frontier_us - self.range_us) // self.slide_us + 1
        return max(MIN_US, window * (self.slide_us // self.pane_us))

    def closed(self, above_us: int, upto_us: int) -> tuple[int, int]:
        """The first and the last window with above_us < end <= upto_us."""
        first = (above_us - self.range_us) // self.slide_us + 1
        last = (upto_us - self.range_us) // self.slide_us
        return first, last

    def start_of(self, end_us: int) -> int:
        """Where the window begins that ends there."""
        return end_us - self.range_us

    def panes_of(self, end_us: int) -> tuple[int, int]:
        """The first pane of the window that ends there, and the one after its last."""
        return (end_us - self.range_us) // self.pane_us, end_us // self.pane_us

    def apart(self, ends: Ints) -> Mask:
        """Of windows by their ends, those that follow without overlap: every second, say."""
        apart_us = self.windows_of_tuple * self.slide_us
        found: Mask = (ends - self.range_us) % apart_us == 0
        return found

    def periods(self, panes: Ints) -> Ints:
        """The periods that panes are in: those of a ledger are as long as a window."""
        return panes // self.panes

    def first_period(self, frontier_us: int) -> int:
        """The first period that decisions may still ask for.

        What comes are of the frontier's period or later; who looks back asks for one more.
        """
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        return frontier_us // self.range_us - 1

    def first_untouched(self, frontier_us: int, highest: int) -> tuple[int, int]:
        """Where the first window begins of which nothing is stored, and when those before it end.

        `highest` is the highest pane of which something is stored: tuples are folded as they
        arrive, also before they are ready.
        """
        pane = max(self.sealed_before(frontier_us), highest + 1)
        window = -(-pane * self.pane_us // self.slide_us)
        return window * self.slide_us, (window - 1) * self.slide_us + self.range_us
