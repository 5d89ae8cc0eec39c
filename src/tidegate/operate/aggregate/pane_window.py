"""Windows of time as panes: which tuples a window has, when it is closed, what open windows need.

A **pane** is the largest piece of time that divides all windows. Panes and windows are numbered,
below zero too. How long panes are and where they begin is for each kind to say.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.duration import duration_text, window_text
from tidegate.errors import QueryError
from tidegate.operate.kernels.group import Rank, one_number, rank_integers
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.kernels.window import Cover


class WindowPanes(ABC):
    """Window k has the panes from k * step up to before k * step + panes."""

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
        """The panes that times are in."""

    @abstractmethod
    def begins(self, panes: Ints) -> Ints:
        """When panes begin, which is when those before them end."""

    @property
    @abstractmethod
    def reach_us(self) -> int:
        """How long a window is, at most."""

    @property
    @abstractmethod
    def lengths_s(self) -> tuple[float, float]:
        """How long windows are, and how much later the next begins; of months about so much."""

    @property
    @abstractmethod
    def pane_text(self) -> str:
        """How long a pane is, in words."""

    @property
    @abstractmethod
    def line(self) -> str:
        """What it is, for the fingerprint."""

    @abstractmethod
    def marked(self, every_us: int) -> WindowPanes:
        """The same windows, of panes that also begin at each multiple of `every_us`."""

    def pane_at(self, time_us: int) -> int:
        """The pane that a time is in; the infinite ones are in panes below and above all others."""
        if time_us in (MIN_US, MAX_US):
            return time_us
        return int(self.numbers(np.array([time_us]))[0])

    def begin(self, pane: int) -> int:
        """When a pane begins."""
        return int(self.begins(np.array([pane]))[0])

    def ranked(self, times: Ints) -> Rank:
        """The panes of times as numbers for `pack`."""
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
        """Where windows begin and end."""
        first = windows * self.step
        return self.begins(first), self.begins(first + self.panes)

    def start_of(self, end_us: int) -> int:
        """Where the window begins that ends there, and has tuples."""
        return self.begin(self.panes_of(end_us)[0])

    def panes_of(self, end_us: int) -> tuple[int, int]:
        """The first pane of the window that ends there, and the one after its last.

        The last pane before the end counts: one of no length, as a day that was skipped, has none.
        """
        after = self.pane_at(end_us - 1) + 1
        return after - self.panes, after

    def follows(self, end_us: int, before_us: int) -> bool:
        """Whether the window that ends there comes next after the one that ends before."""
        return self.panes_of(end_us)[1] - self.panes_of(before_us)[1] == self.step

    def apart(self, ends: Ints) -> Mask:
        """Of windows by their ends, those that follow without overlap: every second, say."""
        first = self.numbers(ends - 1) + 1 - self.panes
        found: Mask = first % (self.windows_of_tuple * self.step) == 0
        return found

    def periods(self, panes: Ints) -> Ints:
        """The periods that panes are in: those of a ledger are as long as a window."""
        return panes // self.panes

    def period_begin(self, period: int) -> int:
        """When a period begins."""
        return self.begin(period * self.panes)

    def first_period(self, frontier_us: int) -> int:
        """The first period that decisions may still ask for.

        What comes are of the frontier's period or later; who looks back asks for one more.
        """
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        return self.pane_at(frontier_us) // self.panes - 1

    def first_untouched(self, frontier_us: int, highest: int) -> tuple[int, int]:
        """Where the first window begins of which nothing is stored, and when those before it end.

        `highest` is the highest pane of which something is stored: tuples are folded as they
        arrive, also before they are ready.
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
        """The length of a pane: the largest that divides both range and slide."""
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
