"""What the windows of a join hold over time, equations 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.model.check import above_zero
from tidegate.model.trace import Floats


@dataclass(frozen=True)
class TimeWindow:
    """The tuples of the last Omega_Time `seconds` of a stream."""

    seconds: float

    def __post_init__(self) -> None:
        above_zero("a window of time", self.seconds, "seconds")

    def contents(self, rates: Floats, step_s: float) -> Floats:
        """omega_i of a stream with the rates r_i at the end of each interval, equation 2.

        The window ends with interval i and has as many intervals as fit in: of rates that do not
        change it holds `seconds * rate` tuples. Of the oldest interval it may have a part.
        """
        edges_s = np.arange(len(rates) + 1) * step_s
        arrived = np.concatenate(([0.0], np.cumsum(rates * step_s)))
        left = np.interp(edges_s[1:] - self.seconds, edges_s, arrived)
        held: Floats = arrived[1:] - left
        return held


@dataclass(frozen=True)
class TupleWindow:
    """The last Omega_Tuple `rows` of a stream."""

    rows: float

    def __post_init__(self) -> None:
        above_zero("a window of tuples", self.rows, "rows")

    def contents(self, rates: Floats, step_s: float) -> Floats:
        """omega_i of a stream with the rates r_i at the end of each interval, equation 3."""
        arrived: Floats = np.minimum(np.cumsum(rates * step_s), self.rows)
        return arrived


Window = TimeWindow | TupleWindow


def in_the_middle(contents: Floats) -> Floats:
    """What a window holds in the middle of each interval, from what it holds at the ends.

    Rates are constant within an interval, so the contents are a line. The mean over the tuples that
    meet them, too.
    """
    middle: Floats = (contents + np.concatenate(([0.0], contents[:-1]))) / 2
    return middle
