"""A join over a trace, with as many instances as are given or as the controller asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.model.control.controller import Bounds, ControllerState, Demand, Limits, bounds
from tidegate.model.control.outlook import outlook
from tidegate.model.control.saso import Timeline, changes
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import Prediction, predict
from tidegate.model.join.trace import Trace
from tidegate.model.join.work import comparisons
from tidegate.model.operation import Floats, Lookback, longest_s

Counts = npt.NDArray[np.int64]

_LEAST_FREE = 0.01
"""The part of the time that instances have at least, however much batches and tuples take."""


@dataclass(frozen=True, kw_only=True)
class JoinModel:
    """A join and where it runs: all that the model knows of it but its rates and instances."""

    window: Lookback
    costs: JoinCosts
    quota: float = 1.0
    deterministic: bool = True
    batch: Batching | None = None

    def prediction(self, trace: Trace, instances: int | Counts) -> Prediction:
        return predict(
            trace,
            self.window,
            self.costs,
            instances=instances,
            quota=self.quota,
            deterministic=self.deterministic,
            batch=self.batch,
        )

    def work(self, trace: Trace) -> Floats:
        """The comparisons that arrive in each interval, equation 4."""
        r, s = trace.r.sum(axis=1), trace.s.sum(axis=1)
        held_r, held_s = (self.window.contents(rates, trace.step_s) for rates in (r, s))
        return comparisons(r, s, held_r, held_s, trace.step_s)

    def free_s(self, trace: Trace) -> Floats:
        """The time of each interval that batches and the moving of tuples leave to instances."""
        if self.batch is None:
            return np.full(len(trace), trace.step_s)
        moved = (trace.r.sum(axis=1) + trace.s.sum(axis=1)) * self.costs.tuple_s
        trigger_s = self.batch.trigger_s
        fixed = self.costs.batch_s / max(trigger_s, self.costs.batch_s) if trigger_s else 0.0
        free: Floats = np.maximum(1 - fixed - moved, _LEAST_FREE) * trace.step_s
        return free


def scaled(
    join: JoinModel, trace: Trace, limits: Limits, *, first: int, ahead_s: float = 0.0
) -> Counts:
    """The instances of each interval, where the controller decides after each about the next.

    It sees the rates of an interval when that is over. With `ahead_s` it looks so far ahead.
    """
    table = bounds(join.costs.comparison_s, limits)
    r, s = trace.r.sum(axis=1), trace.s.sum(axis=1)
    seen = outlook(r, s, join.window, ahead_s=ahead_s, step_s=trace.step_s) if ahead_s else None
    found = np.empty(len(trace), np.int64)
    standing = ControllerState(first)
    for place, (work, free_s) in enumerate(zip(join.work(trace), join.free_s(trace), strict=True)):
        found[place] = standing.instances
        demand = Demand(float(work), float(free_s))
        if seen is not None:
            expected = float(seen.expected[place] * trace.step_s / free_s)
            demand = Demand(demand.work, demand.seconds, expected, bool(seen.settled[place]))
        standing = standing.after(demand, table)
    return found


def wanted(join: JoinModel, trace: Trace, table: Bounds) -> Counts:
    """The fewest instances that have the work of each interval below their upper bound."""
    asked = join.work(trace) / join.free_s(trace)
    return np.array([table.fewest(float(one)) for one in asked], np.int64)


def timeline(
    join: JoinModel,
    trace: Trace,
    prediction: Prediction,
    limits: Limits,
    changed: Sequence[float] = (),
) -> Timeline:
    """What `saso` judges of a simulated run; `changed` are times at which its load changes."""
    seen = changes(trace.times, trace.r.sum(axis=1), trace.s.sum(axis=1))
    return Timeline(
        times=trace.times,
        instances=prediction.instances,
        wanted=wanted(join, trace, bounds(join.costs.comparison_s, limits)),
        latency=prediction.latency,
        changes=sorted({*seen, *changed}),
        window_s=longest_s((join.window,)) or 0.0,
    )
