"""How much work a join will have soon, from the rates that it has had.

Work follows the rates twice: at once, with the tuples that arrive, and over the length of a window,
with those that they are compared with. So when a rate has changed, what it leads to is known long
before it is there: this is the model looking ahead, at rates that stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.model.operation import Floats, Lookback

SETTLED = 0.05
"""Work has settled where it stays within this part of itself until the windows are renewed."""

LASTING = 5
"""A rate that has lasted for a second is expected to last for so many more, and so on."""

_LONG_S = 1e9
"""After that windows of tuples are full, if any tuple arrives."""


@dataclass(frozen=True)
class Outlook:
    """For each interval, by the second: the work to be expected at most, and whether it stays.

    It is what the present rates lead to, as far as they can be expected to last, and what the
    highest ones of as much time before would mean with the windows of now. So a spike of a second
    is not taken for a new level, nor a short pause for the end of a burst.
    """

    expected: Floats
    settled: npt.NDArray[np.bool_]


def outlook(
    r: Floats,
    s: Floats,
    window: Lookback | tuple[Lookback, Lookback],
    *,
    ahead_s: float,
    step_s: float = 1.0,
) -> Outlook:
    """For each of a row of intervals, with the rates of the logical streams.

    `window` is that of both, or those of R and S. `ahead_s` is how far it looks ahead at most, and
    how far back. Costs O(intervals * ahead_s / step_s).
    """
    of_r, of_s = window if isinstance(window, tuple) else (window, window)
    held_r, held_s = of_r.contents(r, step_s), of_s.contents(s, step_s)
    now = r * held_s + s * held_r
    expected = now.copy()
    low_r, low_s, lasted = r, s, 1  # the lowest rates of as many intervals as are to last
    for steps in range(1, max(round(ahead_s / step_s), 1) + 1):
        if steps > lasted * LASTING:
            low_r, low_s = _lower(low_r, r, lasted), _lower(low_s, s, lasted)
            lasted += 1
        then_r = of_r.later(r, low_r, steps * step_s, step_s)
        then_s = of_s.later(s, low_s, steps * step_s, step_s)
        np.maximum(expected, low_r * then_s + low_s * then_r, out=expected)
        # The rates of as long ago, with the windows of now: a short pause ends no burst.
        back = min(steps - 1, len(r))
        before = r[: len(r) - back] * held_s[back:] + s[: len(s) - back] * held_r[back:]
        np.maximum(expected[back:], before, out=expected[back:])
    renewed_s = max(min(w.seconds, _LONG_S) for w in (of_r, of_s))
    last = r * of_s.later(s, s, renewed_s, step_s) + s * of_r.later(r, r, renewed_s, step_s)
    return Outlook(expected, np.abs(last - now) <= SETTLED * np.maximum(last, now))


def _lower(low: Floats, rates: Floats, back: int) -> Floats:
    """The lowest rates, with those of one interval further back."""
    found = low.copy()
    np.minimum(found[back:], rates[:-back], out=found[back:])
    return found
