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

from tidegate.model.window import TimeWindow, TupleWindow, Window

Floats = npt.NDArray[np.float64]
Contents = Callable[[float], tuple[Floats, Floats]]
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


def outlook(
    r: Floats,
    s: Floats,
    window: Window | tuple[Window, Window],
    *,
    ahead_s: float,
    step_s: float = 1.0,
) -> Outlook:
    """For each of a row of intervals, with the rates of the logical streams.

    `window` is that of both streams, or those of R and of S, and `ahead_s` how far it looks ahead,
    and back. Costs O(intervals * ahead_s / step_s).
    """

    of_r, of_s = window if isinstance(window, tuple) else (window, window)

    def contents(steps: float) -> tuple[Floats, Floats]:
        later_s = steps * step_s
        return _later(r, of_r, later_s, step_s), _later(s, of_s, later_s, step_s)

    renewed = max(w.seconds / step_s if isinstance(w, TimeWindow) else _LONG for w in (of_r, of_s))
    return _outlook(r, s, contents, max(round(ahead_s / step_s), 1), renewed)


def _later(rates: Floats, window: Window, later_s: float, step_s: float) -> Floats:
    """What a window holds so much later, if the rate of each interval goes on."""
    edges_s = np.arange(len(rates) + 1) * step_s
    arrived = np.concatenate(([0.0], np.cumsum(rates * step_s)))
    then = arrived[1:] + later_s * rates
    if isinstance(window, TupleWindow):
        return np.minimum(then, window.rows)
    passed_s = later_s - window.seconds  # the oldest that is held, as seen from now
    left = np.interp(edges_s[1:] + min(passed_s, 0.0), edges_s, arrived)
    return np.asarray(then - left - max(passed_s, 0.0) * rates, np.float64)


def _outlook(r: Floats, s: Floats, contents: Contents, ahead: int, renewed: float) -> Outlook:
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
