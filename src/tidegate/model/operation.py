"""What an operator tells the model before it runs: what it does, and how far its windows reach."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tidegate.errors import OptionError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lookback:
    """How far back one side of a join reaches, the paper's Omega: `seconds`, or so many `rows`.

    What is not given is infinite and bounds nothing, so that one formula holds for both.
    """

    seconds: float = math.inf
    rows: float = math.inf

    def __post_init__(self) -> None:
        for kind, value, unit in (("time", self.seconds, "seconds"), ("tuples", self.rows, "rows")):
            if not value > 0:
                where = f"a window of {kind}"
                raise OptionError(where, f"must be more than 0 {unit}, and finite", f"{value:g}")
        if self.seconds == self.rows == math.inf:
            raise OptionError("a window", "must be of seconds or of rows", "one without an end")

    def contents(self, rates: Floats, step_s: float) -> Floats:
        """omega_i of a stream with the rates r_i at the end of each interval: equations 2 and 3.

        The window ends with interval i and has as many intervals as fit in: of rates that do not
        change it holds `seconds * rate` tuples. Of the oldest interval it may have a part.
        """
        return self.later(rates, rates, 0.0, step_s)

    def later(self, rates: Floats, going: Floats, later_s: float, step_s: float) -> Floats:
        """What it holds so much later, if from now on tuples come at the rate `going`."""
        edges_s = np.arange(len(rates) + 1) * step_s
        arrived = np.concatenate(([0.0], np.cumsum(rates * step_s)))
        then = arrived[1:] + later_s * going
        passed_s = later_s - self.seconds  # the oldest that is held, as seen from now
        left = np.interp(edges_s[1:] + min(passed_s, 0.0), edges_s, arrived)
        held: Floats = np.minimum(then - left - max(passed_s, 0.0) * going, self.rows)
        return held

    def full(self, rate: float) -> float:
        """The tuples it holds at a rate that has lasted; rows fill up at any rate, also at none."""
        return self.rows if math.isinf(self.seconds) else min(self.seconds * rate, self.rows)

    def at_speed(self, speed: float) -> Lookback:
        """As long as it takes to fill it, where so much event time passes in a second."""
        return replace(self, seconds=self.seconds / speed)


def longest_s(windows: tuple[Lookback, ...]) -> float | None:
    """The longest of those that are of time; None where all are of rows."""
    return max((w.seconds for w in windows if w.seconds < math.inf), default=None)


def in_the_middle(contents: Floats) -> Floats:
    """What a window holds in the middle of each interval, from what it holds at the ends.

    Rates are constant within an interval, so the contents are a line. The mean over the tuples that
    meet them, too.
    """
    middle: Floats = (contents + np.concatenate(([0.0], contents[:-1]))) / 2
    return middle


@dataclass(frozen=True)
class Operation:
    """What decides how the work of an operator follows its input; the same for all batches.

    `kind` is what subqueries with it are called. A join has a `method`, the `windows` of its left
    and its right side, and the side that each input feeds, 0 or 1, in `sides`. `everywhere` says
    that all instances see all tuples; else they are divided among them. An aggregate over windows
    of time has windows of `range_s` seconds, of which one ends every `slide_s`. `by_tuple` is the
    part of its instances' work that grows with the tuples. It is 0 where map tasks fold tuples into
    a row for each group: shedding tuples leaves the groups.
    """

    kind: str
    method: str | None = None
    windows: tuple[Lookback, ...] = ()
    sides: tuple[int, ...] = ()
    everywhere: bool = False
    range_s: float = 0.0
    slide_s: float = 0.0
    by_tuple: float = 1.0

    @property
    def scans(self) -> bool:
        """Whether it makes all comparisons of the paper's join, whose number rates and windows say.

        Other methods make few of them, and what they take follows the tuples.
        """
        return self.method == "scan"

    def side(self, input: int) -> int:
        """Which side an input feeds; 0 where there are no sides."""
        return self.sides[input] if self.sides else 0
