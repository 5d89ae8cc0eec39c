"""The rates at which tuples came to a subquery, for as far back as its windows reach.

Rates are those of arrivals, which go on whatever the query does. Batches come at any time, and a
rate over a few milliseconds says little: arrivals are counted until an interval is over, and kept
for as long as windows reach back. Plain numbers of bounded size, so that a manifest can have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidegate.model.observation import InputLoad, Observation
from tidegate.model.operation import Floats, Lookback, longest_s

_MOST_CHUNKS = 64
"""Windows that are longer than so many intervals are kept in longer ones."""

_RECENT = 0.75
"""What of shares and speeds counts on from one interval to the next."""

_REAL_TIME = 0.2
"""Event times that are so much faster or slower than the clock, at most, are as fast."""


@dataclass(frozen=True)
class ArrivalCounts:
    """What came in one batch or more: by side of a join, else all together.

    `tuples` arrived and `taken` were read; `passed` are those that filters let through, and
    `event_s` is the event time that passed. The others are None where it is not known.
    """

    seconds: float
    tuples: tuple[float, float] | None
    taken: tuple[float, float] = (0.0, 0.0)
    passed: tuple[float, float] | None = None
    event_s: float | None = None

    @staticmethod
    def of(seen: Observation) -> ArrivalCounts:
        """What an observation says of it; the tuples of no join are those of the first side."""
        return ArrivalCounts.from_inputs(seen.period_s, seen.inputs, seen.sides, seen.event_s)

    @staticmethod
    def from_inputs(
        seconds: float, inputs: Sequence[InputLoad], sides: Sequence[int], event_s: float | None
    ) -> ArrivalCounts:
        """The sums over all sources; of a query that has some without rates, none are known."""
        tuples, taken = [0.0, 0.0], [0.0, 0.0]
        for load in inputs:
            tuples[load.side] += math.nan if load.arrived is None else load.arrived
            taken[load.side] += load.tuples
        known = bool(inputs) and not math.isnan(sum(tuples))
        return ArrivalCounts(
            seconds=seconds,
            tuples=(tuples[0], tuples[1]) if known else None,
            taken=(taken[0], taken[1]),
            passed=(float(sides[0]), float(sides[1])) if sides else None,
            event_s=event_s,
        )


@dataclass(frozen=True)
class Rates:
    """Arrivals by side: in the interval that is not over, and in those before it.

    `open` has the sums of the former: seconds, then of both sides what arrived, was taken and
    passed, and the event time. `chunks` are the intervals, the newest last, each with its seconds
    and the tuples of both sides; `before` is how many came before them. `now` are the rates of the
    newest interval, `shares` what filters let through, `speed` the event time in a second. Grows
    with nothing: of long windows, intervals are put together.
    """

    open: tuple[float, ...] = (0.0,) * 8
    chunks: tuple[tuple[float, float, float], ...] = ()
    before: tuple[float, float] = (0.0, 0.0)
    now: tuple[float, float] = (0.0, 0.0)
    shares: tuple[float, float] = (1.0, 1.0)
    speed: float = 1.0
    seconds: float = 0.0
    """How long the newest interval was."""

    def after(self, arrived: ArrivalCounts) -> Rates:
        """With one batch more; one of which nothing is known is left out."""
        if arrived.tuples is None or arrived.seconds <= 0:
            return self
        passed = arrived.taken if arrived.passed is None else arrived.passed
        more = (arrived.seconds, *arrived.tuples, *arrived.taken, *passed, arrived.event_s or 0.0)
        return replace(self, open=tuple(a + b for a, b in zip(self.open, more, strict=True)))

    def is_over(self, least_s: float) -> bool:
        """Whether the interval has become long enough."""
        return self.open[0] >= least_s

    def closed(self, windows: tuple[Lookback, ...]) -> Rates:
        """With the interval among those that are over, for windows that are to be known."""
        seconds, *counts, event_s = self.open
        arrived, taken, passed = counts[:2], counts[2:4], counts[4:6]
        shares = [
            _mixed(share, min(p / t, 1.0)) if t > 0 else share
            for share, p, t in zip(self.shares, passed, taken, strict=True)
        ]
        tuples = [a * share for a, share in zip(arrived, shares, strict=True)]
        step_s, reach_s = _kept(windows, self.speed)
        chunks, before = _with(self.chunks, (seconds, *tuples), self.before, step_s, reach_s)
        return Rates(
            chunks=chunks,
            before=before,
            now=(tuples[0] / seconds, tuples[1] / seconds),
            shares=(shares[0], shares[1]),
            speed=self._speed(sum(arrived) / seconds, sum(taken), event_s),
            seconds=seconds,
        )

    def over(self, windows: tuple[Lookback, ...]) -> tuple[Floats, Floats, float]:
        """Rates of both sides in even intervals, the newest last, and how long those are.

        The last one has the present rates. Of a side with a window of tuples, the first has all
        that came before, too: the window is as full as it is.
        """
        step_s, _ = _kept(windows, self.speed)
        seconds = np.array([chunk[0] for chunk in self.chunks])
        edges_s = np.concatenate(([0.0], np.cumsum(seconds)))
        count = max(int(np.ceil(edges_s[-1] / step_s - 1e-6)), 1)
        places = edges_s[-1] - step_s * np.arange(count, -1, -1)
        found = []
        for side in range(2):
            sums = np.cumsum([0.0, *(chunk[1 + side] for chunk in self.chunks)])
            rates = np.diff(np.interp(places, edges_s, sums)) / step_s
            rates[-1] = self.now[side]
            if windows and windows[side].rows < math.inf:
                rates[0] += self.before[side] / step_s
            found.append(rates)
        return found[0], found[1], step_s

    def comparisons(self, windows: tuple[Lookback, ...], later_s: float = 0.0) -> float:
        """Pairs in a second, equation 4: now, or later if tuples go on to come as they do now."""
        r, s, step_s = self.over(windows)
        left, right = (window.at_speed(self.speed) for window in windows)
        held_r, held_s = (
            float(w.later(rates, np.full_like(rates, rates[-1]), later_s, step_s)[-1])
            for w, rates in ((left, r), (right, s))
        )
        return float(r[-1] * held_s + s[-1] * held_r)

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it, but for the interval that is not over."""
        return {
            "chunks": [[round(value, 6) for value in chunk] for chunk in self.chunks],
            "before": list(self.before),
            "now": list(self.now),
            "shares": list(self.shares),
            "speed": self.speed,
            "seconds": self.seconds,
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any], open: Sequence[float]) -> Rates:
        """What `recorded` gave, with the interval that was not over."""
        read: dict[str, Any] = {n: _tuples(v) for n, v in recorded.items()}
        return Rates(open=tuple(open), **read)

    def _speed(self, rate: float, taken: float, event_s: float) -> float:
        """By what event time the taken ones are apart, and how fast they come.

        What is taken may be behind what arrives, so its event time over the clock does not say it.
        """
        if taken <= 0 or event_s <= 0 or rate <= 0:
            return self.speed
        speed = _mixed(self.speed, event_s / taken * rate)
        return 1.0 if abs(speed - 1.0) <= _REAL_TIME else speed


def _tuples(value: Any) -> Any:
    """Lists, and lists in lists, as tuples."""
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _mixed(before: float, now: float) -> float:
    return _RECENT * before + (1 - _RECENT) * now


def _kept(windows: tuple[Lookback, ...], speed: float) -> tuple[float, float]:
    """How long intervals are kept apart at least, and how far back."""
    reach_s = max((longest_s(windows) or 0.0) / speed, float(_MOST_CHUNKS) / 4)
    return max(reach_s / (_MOST_CHUNKS - 4), 1.0), reach_s


def _with(
    chunks: Sequence[tuple[float, float, float]],
    new: tuple[float, ...],
    before: tuple[float, float],
    step_s: float,
    reach_s: float,
) -> tuple[tuple[tuple[float, float, float], ...], tuple[float, float]]:
    """With one interval more, joined to the last where that is short; without those too old."""
    every = list(chunks)
    if every and every[-1][0] < step_s * 0.999:  # so that as many as are kept reach far enough
        last = every.pop()
        new = tuple(a + b for a, b in zip(last, new, strict=True))
    every.append((new[0], new[1], new[2]))
    gone = list(before)
    while len(every) > 1 and (sum(c[0] for c in every[1:]) >= reach_s or len(every) > _MOST_CHUNKS):
        _, *tuples = every.pop(0)
        gone = [a + b for a, b in zip(gone, tuples, strict=True)]
    return tuple(every), (gone[0], gone[1])
