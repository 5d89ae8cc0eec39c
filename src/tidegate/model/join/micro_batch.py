"""How long tuples wait for the batch that answers them; the derivation is in docs/model.md.

Batches follow one another: one starts when the one before has ended, the trigger allows it and
there is input, takes all that has arrived, and commits its output at its end. So a batch that takes
longer leaves more to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.batch_run import BatchRun, Course, batch_runs
from tidegate.model.join.trace import above_zero, not_negative
from tidegate.model.operation import Floats


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


@dataclass(frozen=True)
class CarriedVariance:
    """The variance of the newest batch, which the next has a part of; `pace` has the derivation.

    Stepped over batches one by one, or over `count` that are all alike.
    """

    variance: float = 0.0

    def over(self, own: float, load: float, count: float) -> tuple[float, CarriedVariance]:
        """The mean variance of the batches before each of them, and what the last one has.

        `own` is the variance that each adds.
        """
        kept = load * load
        if count == 1 or kept >= 1:
            return self.variance, CarriedVariance(own + kept * self.variance)
        end = own / (1 - kept)
        left = kept**count
        mean = end + (self.variance - end) * (1 - left) / (count * (1 - kept))
        return mean, CarriedVariance(end + (self.variance - end) * left)


def batch_times(
    arriving: Floats,
    comparisons: Floats,
    instances: Floats,
    slowdown: Floats,
    *,
    quota: float,
    costs: JoinCosts,
    batching: Batching,
    step_s: float,
) -> BatchTimes:
    """Go through the batches of a trace.

    `arriving` are the tuples of each interval and `comparisons` their work, both even over it;
    `slowdown` is how many times as long as its costs say everything takes in it.
    """
    course = Course(arriving, comparisons, step_s)
    runs = batch_runs(
        course,
        costs.comparison_s / (instances * quota),
        costs,
        slowdown=slowdown,
        trigger_s=batching.trigger_s,
        rows=batching.rows,
    )
    return _by_interval(course, runs, costs)


def _by_interval(course: Course, runs: list[BatchRun], costs: JoinCosts) -> BatchTimes:
    """Shares of batches by the time that they are at work in each interval."""
    size = len(course.edges_s) - 1
    if not runs:
        none = np.full(size, np.nan)
        return BatchTimes(np.zeros(size), none, none, none)
    # In the order of the fields of a BatchRun.
    after, until, start, tuples, comparisons, _, moving, working, busy, cycle, count, woken = (
        np.array(runs, np.float64).T
    )
    waiting = np.where(woken > 0, 0.0, start - _mean_arrival(course, after, until))
    # A backlog grows or shrinks from one batch to the next.
    waiting += np.where(until < start, (count - 1) / 2 * (cycle - (until - after)), 0.0)
    last = start + (count - 1) * cycle
    made = _spread(start, last + moving + working, comparisons, course.edges_s)
    longer, larger = _scattered(runs, costs)
    waiting, moving, working = waiting + longer, moving * larger, working * larger
    weight = _spread(start, last + busy, tuples, course.edges_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            _spread(start, last + busy, tuples * values, course.edges_s) / weight
            for values in (waiting, moving, working)
        ]
    return BatchTimes(made, *(np.where(weight > 0, values, np.nan) for values in means))


def _scattered(runs: list[BatchRun], costs: JoinCosts) -> tuple[Floats, Floats]:
    """How much longer tuples wait, and how many times as much their batches take, by scatter.

    Batches that wait for a trigger or a tuple, or may have no more tuples, start at times that have
    nothing to do with how long the one before took.
    """
    longer, larger = np.zeros(len(runs)), np.ones(len(runs))
    carried = CarriedVariance()
    for place, run in enumerate(runs if costs.scatter else ()):
        taken_s, came_s = run.moving_s + run.working_s, run.until_s - run.after_s
        if run.woken or run.busy_s > taken_s or run.until_s < run.start_s or came_s <= 0:
            carried = CarriedVariance()
            continue
        load = (taken_s - run.fixed_s) / came_s
        before, carried = carried.over((costs.scatter * taken_s) ** 2, load, run.batches)
        longer[place] = before / (2 * came_s)
        larger[place] = 1 + load * before / came_s / taken_s
    return longer, larger


def _spread(starts: Floats, ends: Floats, amounts: Floats, edges: Floats) -> Floats:
    """Amounts that come evenly between each start and its end, one after the other, by interval."""
    times = np.stack((starts, ends), axis=1).reshape(-1)
    total = np.repeat(np.concatenate(([0.0], np.cumsum(amounts))), 2)[1:-1]
    spread: Floats = np.diff(np.interp(edges, times, total, left=0.0))
    return spread


def _mean_arrival(course: Course, after: Floats, until: Floats) -> Floats:
    """When the tuples came, on average, that arrived after one time and until another."""
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
