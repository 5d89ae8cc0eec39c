"""What the rates of a join say of the work ahead, between a row of rates and the controller.

Work follows the rates twice: at once, with the tuples that arrive, and over the length of a window,
with those that they are compared with. So when a rate has changed, what it leads to is known long
before it is there: this is the model looking ahead, at rates that stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Contents = Callable[[int], tuple[Floats, Floats]]
"""The tuples of both windows in so many intervals, if rates stay; 0 is what they hold now."""

SETTLED = 0.05
"""Work has settled where it stays within this part of itself until the windows are renewed."""

_LONG = 10**9
"""Intervals after which windows of tuples are full, if any tuple arrives."""


@dataclass(frozen=True)
class Outlook:
    """For each interval, by the second: the work to be expected at most, and whether it stays.

    It is what the present rates lead to, and what the highest ones of as much time before would
    mean with the windows of now: a short pause is not the end of a burst.
    """

    expected: Floats
    settled: npt.NDArray[np.bool_]


def over_time(r: Floats, s: Floats, *, span: int, ahead: int, step_s: float = 1.0) -> Outlook:
    """With windows of `span` intervals, the present one among them.

    `r` and `s` are the rates of the logical streams, `ahead` the intervals to look ahead and back.
    Costs O(intervals * ahead).
    """
    places = np.arange(len(r))
    sums = [np.concatenate([[0.0], np.cumsum(rates)]) * step_s for rates in (r, s)]

    def contents(steps: int) -> tuple[Floats, Floats]:
        renewed = min(steps, span)
        oldest = np.clip(places - span + 1 + renewed, 0, places + 1)
        held = [sum_[places + 1] - sum_[oldest] for sum_ in sums]
        return held[0] + renewed * r * step_s, held[1] + renewed * s * step_s

    return _outlook(r, s, contents, ahead, span)


def over_tuples(r: Floats, s: Floats, *, rows: int, ahead: int, step_s: float = 1.0) -> Outlook:
    """With windows of the newest `rows` tuples of each stream."""
    sums = [np.cumsum(rates) * step_s for rates in (r, s)]

    def contents(steps: int) -> tuple[Floats, Floats]:
        more = steps * step_s
        return np.minimum(sums[0] + more * r, rows), np.minimum(sums[1] + more * s, rows)

    return _outlook(r, s, contents, ahead, _LONG)


def _outlook(r: Floats, s: Floats, contents: Contents, ahead: int, renewed: int) -> Outlook:
    held_r, held_s = contents(0)
    now = r * held_s + s * held_r
    expected = now.copy()
    for steps in range(1, ahead + 1):
        then_r, then_s = contents(steps)
        np.maximum(expected, r * then_s + s * then_r, out=expected)
        before = r[:-steps] * held_s[steps:] + s[:-steps] * held_r[steps:]
        np.maximum(expected[steps:], before, out=expected[steps:])
    last_r, last_s = contents(renewed)
    last = r * last_s + s * last_r
    return Outlook(expected, np.abs(last - now) <= SETTLED * np.maximum(last, now))
