"""Goes through the batches of a trace, one after the other.

A batch takes what has come since the one before took the last, so it depends on that one. Those
that are equal within an interval are taken as one run: then the steps are few, however short
batches are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.operation import Floats

_EQUAL = 1e-4
"""A batch that takes as long as its tuples took to come, but for this part, is like the next."""


class Course:
    """Tuples and comparisons until any time, and the time until which so many tuples arrive."""

    def __init__(self, arriving: Floats, comparisons: Floats, step_s: float) -> None:
        self.edges_s: Floats = np.arange(len(arriving) + 1, dtype=np.float64) * step_s
        self.tuples = np.concatenate(([0.0], np.cumsum(arriving)))
        self.comparisons = np.concatenate(([0.0], np.cumsum(comparisons)))
        self.step_s = step_s
        self.end_s = float(self.edges_s[-1])
        self._tuples: list[float] = self.tuples.tolist()
        self._comparisons: list[float] = self.comparisons.tolist()

    def interval(self, at_s: float) -> int:
        return min(int(at_s / self.step_s), len(self._tuples) - 2)

    def until(self, at_s: float) -> tuple[float, float]:
        """Tuples and comparisons of what has arrived by then."""
        i = self.interval(at_s)
        part = at_s / self.step_s - i
        tuples, comparisons = self._tuples, self._comparisons
        return (
            tuples[i] + part * (tuples[i + 1] - tuples[i]),
            comparisons[i] + part * (comparisons[i + 1] - comparisons[i]),
        )

    def when(self, tuples: float) -> float:
        """When so many have arrived; the end of the trace where they never do."""
        i = bisect_right(self._tuples, tuples) - 1
        if i + 1 >= len(self._tuples):
            return self.end_s
        part = (tuples - self._tuples[i]) / (self._tuples[i + 1] - self._tuples[i])
        return (i + part) * self.step_s


class BatchRun(NamedTuple):
    """Batches that are all like the first of them.

    The first starts at `start_s` and takes what arrived after `after_s` and until `until_s`. A next
    one may start after `busy_s`, and does after `cycle_s`; there are `batches` of them, which have
    `tuples` and `comparisons` together. `fixed_s` is the part of `moving_s` that a batch takes
    however small it is. `woken` is 1 for those that start when their only tuple comes, else 0.
    """

    after_s: float
    until_s: float
    start_s: float
    tuples: float
    comparisons: float
    fixed_s: float
    moving_s: float
    working_s: float
    busy_s: float
    cycle_s: float
    batches: float
    woken: float


def batch_runs(
    course: Course,
    per_comparison_s: Floats,
    costs: JoinCosts,
    *,
    slowdown: Floats,
    trigger_s: float,
    rows: int | None,
) -> list[BatchRun]:
    """All batches that start before the trace ends, each from the one before.

    `per_comparison_s` is what a comparison takes where all instances are at work, by interval, and
    `slowdown` how many times as long as that, and as `costs` say, everything takes in it.
    """
    found: list[BatchRun] = []
    seconds_each, slow = (per_comparison_s * slowdown).tolist(), slowdown.tolist()
    most = math.inf if rows is None else rows
    taken_s = taken = made = 0.0  # until when tuples were taken; how many, with what comparisons
    start_s, woken = course.when(1.0), True
    while start_s < course.end_s:
        place = course.interval(start_s)
        until_s, tuples, comparisons = start_s, *course.until(start_s)
        # A batch that may have no more than so many takes the oldest, and leaves a backlog.
        if tuples - taken > most:
            until_s = course.when(taken + most)
            tuples, comparisons = course.until(until_s)
        fixed_s = costs.batch_s * slow[place]
        moving_s = fixed_s + costs.tuple_s * slow[place] * (tuples - taken)
        working_s = seconds_each[place] * (comparisons - made)
        busy_s = max(moving_s + working_s, trigger_s)
        # The next one needs a tuple: it waits for the first that is not taken yet.
        idle_s = max(course.when(tuples + 1) - start_s - busy_s, 0.0)
        cycle_s, last_s = busy_s + idle_s, until_s
        # Equal batches are one run: full ones while a backlog fills them, others once they settled.
        if until_s < start_s:
            count = _filled(course, taken_s, until_s, start_s, cycle_s)
        elif woken == (idle_s > 0):
            count = _settled(course, taken_s, start_s, cycle_s)
        else:
            count = 1
        if count > 1:
            last_s += (count - 1) * (until_s - taken_s if until_s < start_s else cycle_s)
            tuples, comparisons = course.until(last_s)
        found.append(
            BatchRun(
                after_s=taken_s,
                until_s=until_s,
                start_s=start_s,
                tuples=tuples - taken,
                comparisons=comparisons - made,
                fixed_s=fixed_s,
                moving_s=moving_s,
                working_s=working_s,
                busy_s=busy_s,
                cycle_s=cycle_s,
                batches=count,
                woken=float(woken),
            )
        )
        taken_s, taken, made = last_s, tuples, comparisons
        start_s += count * cycle_s
        woken = idle_s > 0
    return found


def _settled(course: Course, taken_s: float, start_s: float, cycle_s: float) -> int:
    """How many batches will be like one that takes all tuples, with itself, in its interval."""
    place = course.interval(start_s)
    if abs(start_s - taken_s - cycle_s) >= _EQUAL * cycle_s or course.interval(taken_s) != place:
        return 1
    return max(1, int(((place + 1) * course.step_s - start_s) / cycle_s))


def _filled(course: Course, taken_s: float, until_s: float, start_s: float, cycle_s: float) -> int:
    """How many will be like one that leaves tuples to the next, because it may have no more.

    So long as they run in one interval, with tuples of one interval, and the backlog fills them.
    """
    place, source = course.interval(start_s), course.interval(taken_s)
    if course.interval(until_s) != source:
        return 1
    rows = course.until(until_s)[0] - course.until(taken_s)[0]
    backlog = course.until(start_s)[0] - course.until(until_s)[0]
    lost = rows - (course.until(start_s + cycle_s)[0] - course.until(start_s)[0])
    further = min(
        ((place + 1) * course.step_s - start_s) / cycle_s - 1,
        ((source + 1) * course.step_s - until_s) / (until_s - taken_s),
        backlog / lost - 1 if lost > 0 else math.inf,
    )
    return 1 + max(0, int(further))
