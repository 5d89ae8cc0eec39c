"""How long tuples wait for the batch that answers them; the derivation is in docs/model.md.

Batches follow one another: one starts when the one before has ended, the trigger allows it and
there is input, takes all that has arrived, and commits its output at its end. So a batch that takes
longer leaves more to the next. This goes through the batches of a trace, each from the one before;
those that have become equal within an interval are taken as one run.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from tidegate.model.check import above_zero, not_negative
from tidegate.model.costs import Costs
from tidegate.model.prediction import Floats

_EQUAL = 1e-4
"""A batch as long as the one before it but for this part of it will have the next as long too."""


@dataclass(frozen=True)
class Batching:
    """When batches start: `trigger_s` seconds after the one before at the earliest.

    One takes no more than `rows` tuples; without a number, all that there are.
    """

    trigger_s: float = 0.0
    rows: int | None = None

    def __post_init__(self) -> None:
        not_negative("the trigger of batches", self.trigger_s, "seconds")
        if self.rows is not None:
            above_zero("a batch", self.rows, "rows")


@dataclass(frozen=True)
class BatchTimes:
    """What batches make of each interval, by the time of it in which they run.

    `made` are comparisons. `waiting_s` is how long the tuples of the batches that run here have
    waited for them, `moving_s` the part of a batch that is for itself and for moving tuples, and
    `working_s` its part for comparisons. Until the trigger a batch counts as the one that runs. NaN
    where none does.
    """

    made: Floats
    waiting_s: Floats
    moving_s: Floats
    working_s: Floats


def batch_times(
    arriving: Floats,
    comparisons: Floats,
    instances: Floats,
    *,
    quota: float,
    costs: Costs,
    batching: Batching,
    step_s: float,
) -> BatchTimes:
    """Go through the batches of a trace.

    `arriving` are the tuples of each interval and `comparisons` their work, both even over it.
    """
    per_instance_s = costs.comparison_s / (instances * quota)
    course = _Course(arriving, comparisons, step_s)
    return _by_interval(course, _run(course, per_instance_s, costs, batching))


class _Course:
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


@dataclass(frozen=True)
class _Run:
    """Batches that are all like the first of them.

    The first starts at `start_s`, takes what arrived after `after_s` and until `until_s`, and has
    `tuples` and `comparisons`. Another may start after `busy_s`, and does after `cycle_s`, `count`
    times in all. `woken` are those that start when their only tuple comes.
    """

    after_s: float
    until_s: float
    start_s: float
    tuples: float
    comparisons: float
    moving_s: float
    working_s: float
    busy_s: float
    cycle_s: float
    woken: bool
    count: int = 1

    def steady(self, before: _Run | None) -> bool:
        """Whether the next batch will be as this one, if its tuples come at the same rate."""
        return (
            before is not None
            and self.woken == before.woken
            and (self.woken or self.until_s == self.start_s)
            and abs(self.cycle_s - before.cycle_s) < _EQUAL * self.cycle_s
        )


def _run(course: _Course, per_instance_s: Floats, costs: Costs, batching: Batching) -> list[_Run]:
    """All batches that start before the trace ends."""
    found: list[_Run] = []
    seconds_each = per_instance_s.tolist()
    most = math.inf if batching.rows is None else batching.rows
    taken_s = taken = made = 0.0  # until when tuples were taken; how many, with what comparisons
    start_s, woken = course.when(1.0), True
    while start_s < course.end_s:
        place = course.interval(start_s)
        until_s, tuples, comparisons = start_s, *course.until(start_s)
        if tuples - taken > most:
            until_s = course.when(taken + most)
            tuples, comparisons = course.until(until_s)
        moving_s = costs.batch_s + costs.tuple_s * (tuples - taken)
        working_s = seconds_each[place] * (comparisons - made)
        busy_s = max(moving_s + working_s, batching.trigger_s)
        idle_s = max(course.when(tuples + 1) - start_s - busy_s, 0.0)
        run = _Run(
            after_s=taken_s,
            until_s=until_s,
            start_s=start_s,
            tuples=tuples - taken,
            comparisons=comparisons - made,
            moving_s=moving_s,
            working_s=working_s,
            busy_s=busy_s,
            cycle_s=busy_s + idle_s,
            woken=woken,
        )
        if run.steady(found[-1] if found else None) and course.interval(taken_s) == place:
            rest_s = (place + 1) * course.step_s - start_s
            run = replace(run, count=max(1, int(rest_s / run.cycle_s)))
        found.append(run)
        taken_s, taken, made = until_s, tuples, comparisons
        if run.count > 1:
            taken_s = start_s + (run.count - 1) * run.cycle_s
            taken, made = course.until(taken_s)
        start_s += run.count * run.cycle_s
        woken = idle_s > 0
    return found


def _by_interval(course: _Course, runs: list[_Run]) -> BatchTimes:
    """Shares of batches by the time that they are at work in each interval."""
    size = len(course.edges_s) - 1
    if not runs:
        none = np.full(size, np.nan)
        return BatchTimes(np.zeros(size), none, none, none)
    start, cycle, count = (_column(runs, n) for n in ("start_s", "cycle_s", "count"))
    moving, working = _column(runs, "moving_s"), _column(runs, "working_s")
    weights = count * _column(runs, "tuples")
    waiting = np.where(_column(runs, "woken") > 0, 0.0, start - _mean_arrival(course, runs))
    last = start + (count - 1) * cycle
    made = _spread(
        start, last + moving + working, count * _column(runs, "comparisons"), course.edges_s
    )
    busy = last + _column(runs, "busy_s")
    weight = _spread(start, busy, weights, course.edges_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            _spread(start, busy, weights * values, course.edges_s) / weight
            for values in (waiting, moving, working)
        ]
    return BatchTimes(made, *(np.where(weight > 0, values, np.nan) for values in means))


def _column(runs: list[_Run], name: str) -> Floats:
    return np.array([getattr(run, name) for run in runs], np.float64)


def _spread(starts: Floats, ends: Floats, amounts: Floats, edges: Floats) -> Floats:
    """Amounts that come evenly between each start and its end, one after the other, by interval."""
    times = np.stack((starts, ends), axis=1).reshape(-1)
    total = np.repeat(np.concatenate(([0.0], np.cumsum(amounts))), 2)[1:-1]
    spread: Floats = np.diff(np.interp(edges, times, total, left=0.0))
    return spread


def _mean_arrival(course: _Course, runs: list[_Run]) -> Floats:
    """When the tuples of the first batch of each run came, on average."""
    after, until = _column(runs, "after_s"), _column(runs, "until_s")
    moments = np.concatenate(
        ([0.0], np.cumsum(np.diff(course.tuples) * (course.edges_s[:-1] + course.step_s / 2)))
    )

    def moment(at: Floats) -> Floats:
        """The sum of the times of all arrivals by then."""
        i = np.clip(np.searchsorted(course.edges_s, at, "right") - 1, 0, len(moments) - 2)
        arrived = np.interp(at, course.edges_s, course.tuples) - course.tuples[i]
        summed: Floats = moments[i] + arrived * (course.edges_s[i] + at) / 2
        return summed

    arrived = np.interp(until, course.edges_s, course.tuples) - np.interp(
        after, course.edges_s, course.tuples
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = (moment(until) - moment(after)) / arrived
    return mean
