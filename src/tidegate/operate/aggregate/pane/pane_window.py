"""Windows of time as panes: which tuples a window has, when it is closed, what open windows need.

A **pane** is the largest piece of time that divides all windows. Panes and windows have numbers,
also negative ones. Each kind of window says how long panes are and where they begin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.duration import duration_text, window_text
from tidegate.errors import QueryError
from tidegate.operate.kernels.group import Rank, one_number, rank_integers
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.kernels.window.window import Cover


class WindowPanes(ABC):
    """Window k has the panes k * step to k * step + panes - 1."""

    @property
    @abstractmethod
    def panes(self) -> int:
        """How many panes a window has."""

    @property
    @abstractmethod
    def step(self) -> int:
        """How many panes later the next window begins."""

    @abstractmethod
    def numbers(self, times: Ints) -> Ints:
        """The number of the pane of each time."""

    @abstractmethod
    def begins(self, panes: Ints) -> Ints:
        """When panes begin, which is when the panes before them end."""

    @property
    @abstractmethod
    def reach_us(self) -> int:
        """How long a window is, at most."""

    @property
    @abstractmethod
    def lengths_s(self) -> tuple[float, float]:
        """The length of windows and of the slide, in seconds; for months an average."""

    @property
    @abstractmethod
    def pane_text(self) -> str:
        """How long a pane is, in words."""

    @property
    @abstractmethod
    def line(self) -> str:
        """The window as one line of the query's fingerprint."""

    @abstractmethod
    def marked(self, every_us: int) -> WindowPanes:
        """The same windows, with panes that also begin at each multiple of `every_us`."""

    def pane_at(self, time_us: int) -> int:
        """The pane of a time; MIN_US and MAX_US are in panes below and above all others."""
        if time_us in (MIN_US, MAX_US):
            return time_us
        return int(self.numbers(np.array([time_us]))[0])

    def begin(self, pane: int) -> int:
        """When a pane begins."""
        return int(self.begins(np.array([pane]))[0])

    def ranked(self, times: Ints) -> Rank:
        """The panes of times as numbers for `pack`."""
        # A batch often lies in one pane: two comparisons then save a pass of divisions.
        if len(times):
            low, high = self.pane_at(int(times.min())), self.pane_at(int(times.max()))
            if low == high:
                return one_number(len(times), low)
        return rank_integers(self.numbers(times))

    @property
    def cover(self) -> Cover:
        """Which panes each window has."""
        return Cover(self.panes, self.step)

    @property
    def windows_of_tuple(self) -> int:
        """In how many windows a tuple is, at most."""
        return self.cover.windows

    @property
    def overlapping(self) -> bool:
        """Whether windows begin before the one before has ended."""
        return self.step < self.panes

    def sealed_before(self, frontier_us: int) -> int:
        """The first pane that may still get tuples; all below it can get no more."""
        return self.pane_at(frontier_us)

    def needed_from(self, frontier_us: int) -> int:
        """The lowest pane that some window with end > frontier_us covers."""
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        window = (self.pane_at(frontier_us) - self.panes) // self.step + 1
        return max(MIN_US, window * self.step)

    def closed(self, above_us: int, upto_us: int) -> tuple[int, int]:
        """The first and the last window with above_us < end <= upto_us."""
        first = (self.pane_at(above_us) - self.panes) // self.step + 1
        last = (self.pane_at(upto_us) - self.panes) // self.step
        return first, last

    def bounds(self, windows: Ints) -> tuple[Ints, Ints]:
        """When windows begin and end."""
        first = windows * self.step
        return self.begins(first), self.begins(first + self.panes)

    def start_of(self, end_us: int) -> int:
        """When the window begins that ends at `end_us`; it must have tuples."""
        return self.begin(self.panes_of(end_us)[0])

    def panes_of(self, end_us: int) -> tuple[int, int]:
        """The first pane of the window that ends at `end_us`, and the one after its last.

        Panes may have no length, as a day that a time zone skipped. So several windows can end at
        one time: the one whose last pane has tuples counts.
        """
        after = self.pane_at(end_us - 1) + 1
        return after - self.panes, after

    def follows(self, end_us: int, before_us: int) -> bool:
        """Whether the window that ends at `end_us` is the next after the one ending `before_us`."""
        return self.panes_of(end_us)[1] - self.panes_of(before_us)[1] == self.step

    def apart(self, ends: Ints) -> Mask:
        """Marks every n-th window, by their ends, so that no two marked windows overlap."""
        first = self.numbers(ends - 1) + 1 - self.panes
        found: Mask = first % (self.windows_of_tuple * self.step) == 0
        return found

    def periods(self, panes: Ints) -> Ints:
        """The period of each pane; a period of a ledger is as long as a window."""
        return panes // self.panes

    def period_begin(self, period: int) -> int:
        """When a period begins."""
        return self.begin(period * self.panes)

    def first_period(self, frontier_us: int) -> int:
        """The first period whose decisions are needed.

        Tuples to come are of the frontier's period or later, and a partitioner may look back one
        period.
        """
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        return self.pane_at(frontier_us) // self.panes - 1

    def first_untouched(self, frontier_us: int, highest: int) -> tuple[int, int]:
        """When the first window without stored tuples begins, and when all windows before it end.

        `highest` is the highest stored pane. It may be beyond the frontier, because tuples are
        folded as they arrive, before they are ready.
        """
        pane = max(self.sealed_before(frontier_us), highest + 1)
        window = -(-pane // self.step)
        return self.begin(window * self.step), self.begin((window - 1) * self.step + self.panes)


@dataclass(frozen=True)
class PaneWindow(WindowPanes):
    """Windows [k * slide + offset, k * slide + offset + range) for every whole k.

    With `every_us` panes also begin at each multiple of it.
    """

    range_us: int
    slide_us: int
    offset_us: int = 0
    every_us: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.slide_us <= self.range_us:
            got = f"RANGE {self.range_us} SLIDE {self.slide_us} microseconds"
            raise QueryError("window", "0 < SLIDE <= RANGE is required", got)

    def __str__(self) -> str:
        return window_text(self.range_us, self.slide_us, self.offset_us)

    def marked(self, every_us: int) -> PaneWindow:
        return replace(self, every_us=every_us)

    @property
    def pane_us(self) -> int:
        """The length of a pane: the largest that divides range and slide, and hits every mark."""
        cut = () if self.every_us is None else (self.every_us, self.offset_us)
        return math.gcd(self.range_us, self.slide_us, *cut)

    @property
    def panes(self) -> int:
        return self.range_us // self.pane_us

    @property
    def step(self) -> int:
        return self.slide_us // self.pane_us

    def numbers(self, times: Ints) -> Ints:
        return (times - self.offset_us if self.offset_us else times) // self.pane_us

    def begins(self, panes: Ints) -> Ints:
        return panes * self.pane_us + self.offset_us

    def pane_at(self, time_us: int) -> int:
        return (time_us - self.offset_us) // self.pane_us

    def begin(self, pane: int) -> int:
        return pane * self.pane_us + self.offset_us

    def sealed_before(self, frontier_us: int) -> int:
        return frontier_us if frontier_us in (MIN_US, MAX_US) else self.pane_at(frontier_us)

    @property
    def reach_us(self) -> int:
        return self.range_us

    @property
    def lengths_s(self) -> tuple[float, float]:
        return self.range_us / 1e6, self.slide_us / 1e6

    @property
    def pane_text(self) -> str:
        return duration_text(self.pane_us)

    @property
    def line(self) -> str:
        offset = f" offset {self.offset_us}" if self.offset_us else ""
        every = "" if self.every_us is None else f" every {self.every_us}"
        return f"window {self.range_us} {self.slide_us}{offset}{every}"
