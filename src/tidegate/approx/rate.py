"""Which share of the tuples a query that sheds keeps, as a function of event time.

A change counts for tuples from an event time on that no tuple had yet when it was made. So what is
kept of a tuple follows from its own time and from the record of changes, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidegate.approx.array import Ints, Words
from tidegate.batch import MIN_US

Floats = npt.NDArray[np.float64]

WHOLE = 2**64
"""One more than the largest priority."""

SLACK = 2
"""As a total, so many times the share are candidates: of a group about as many are then there as
are due, although chance decides which they are."""

NANO = 1_000_000_000
"""What is due of tuples is counted in so many parts of one: whole numbers add up in any order."""


def limit_of(rate: float) -> int:
    """The priority below which tuples are kept at a rate; WHOLE keeps all of them."""
    return int(rate * WHOLE)


@dataclass(frozen=True)
class RateLog:
    """Rates by the event time from which on each counts, ascending; the first from MIN_US on.

    Grows with the changes that tuples still to come may be before (`since`).
    """

    rates: tuple[tuple[int, float], ...]

    @staticmethod
    def of(rate: float) -> RateLog:
        """One rate for all times."""
        return RateLog(((MIN_US, rate),))

    @property
    def newest(self) -> float:
        return self.rates[-1][1]

    def changed(self, from_us: int, rate: float) -> RateLog:
        """The same with another rate from a time on, which is not before the newest change."""
        kept = tuple(one for one in self.rates if one[0] < from_us)
        if kept and kept[-1][1] == rate:
            return RateLog(kept)
        return RateLog((*kept, (from_us if kept else MIN_US, rate)))

    def since(self, frontier_us: int) -> RateLog:
        """Without what only tuples below the frontier were kept by."""
        live = [
            (us, rate)
            for (us, rate), (until_us, _) in pairwise(self.rates)
            if until_us > frontier_us
        ]
        live.append(self.rates[-1])
        return RateLog(((MIN_US, live[0][1]), *live[1:]))

    def spans(self, times: Ints) -> list[tuple[float, slice | npt.NDArray[np.bool_]]]:
        """Each rate with the tuples that it counts for; one slice of all where it is one rate."""
        if len(self.rates) == 1 or not len(times):
            return [(self.newest, slice(None))]
        starts = np.array([us for us, _ in self.rates], np.int64)
        place = np.searchsorted(starts, times, "right") - 1
        found = [(rate, place == number) for number, (_, rate) in enumerate(self.rates)]
        there = [(rate, mask) for rate, mask in found if mask.any()]
        return [(there[0][0], slice(None))] if len(there) == 1 else list(there)

    def at(self, times: Ints) -> Floats:
        """The rate of each tuple."""
        rates = np.empty(len(times))
        for rate, part in self.spans(times):
            rates[part] = rate
        return rates

    def recorded(self) -> list[list[float]]:
        """As a manifest has it."""
        return [[us, rate] for us, rate in self.rates]

    @staticmethod
    def restored(recorded: Sequence[Sequence[float]]) -> RateLog:
        return RateLog(tuple((int(us), float(rate)) for us, rate in recorded))


def levelled(words: Words, rate: float, level: float) -> Words:
    """Priorities of tuples that are kept at a rate, as if they were kept at another, `level`.

    Those below the limit of the rate, and no others, are then below that of the level, and their
    order stays; so do those below SLACK times the limits, where there are such. So tuples of
    different rates are told apart by one limit.
    """
    if rate == level:
        return words
    from tidegate.approx.rate_loop import levelled_loop

    limit, to = limit_of(rate), limit_of(level)
    slack = min(SLACK, WHOLE / limit, WHOLE / to)
    steep = (WHOLE - slack * to) / max(WHOLE - slack * limit, 1.0)
    bends = map(float, (slack * limit, to / limit, slack * to, steep))
    found: Words = levelled_loop()(
        np.ascontiguousarray(words, np.uint64), np.uint64(limit - 1), np.uint64(to), *bends
    )
    return found
