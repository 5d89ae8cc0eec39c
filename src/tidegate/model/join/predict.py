"""Throughput and latency of a join over a trace: the equations of the paper put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.micro_batch import Batching, batch_times
from tidegate.model.join.readiness import input_latency
from tidegate.model.join.trace import (
    Instances,
    Trace,
    check_costs,
    check_quota,
    check_trace,
    instances_of,
    slowdown_of,
)
from tidegate.model.join.work import capacity, comparisons, done, join_latency, output_latency
from tidegate.model.operation import Floats, Lookback, in_the_middle


@dataclass(frozen=True)
class Prediction:
    """Contents of the windows in tuples, comparisons of all instances together, times in seconds.

    `comparisons` is the work that arrives in an interval, `throughput` the comparisons a second
    that are made in it: less in overload, more when a backlog is worked off. A latency that no
    tuple has (there is none, or no work is done) is NaN, in the terms and in their sum.
    """

    times: Floats
    window_r: Floats
    window_s: Floats
    comparisons: Floats
    throughput: Floats
    latency_in: Floats
    latency_join: Floats
    latency_out: Floats
    latency_batch: Floats
    instances: npt.NDArray[np.int64]

    @property
    def terms(self) -> dict[str, Floats]:
        """The terms of the latency that are not nothing, by their names."""
        terms = {name: getattr(self, f"latency_{name}") for name in ("in", "join", "out", "batch")}
        return {name: values for name, values in terms.items() if np.nansum(values) > 0}

    @property
    def latency(self) -> Floats:
        """Their sum, equation 1, and what micro-batches add."""
        return self.latency_in + self.latency_join + self.latency_out + self.latency_batch


def predict(
    trace: Trace,
    window: Lookback | tuple[Lookback, Lookback],
    costs: JoinCosts,
    *,
    instances: Instances,
    quota: float = 1.0,
    deterministic: bool = True,
    batch: Batching | None = None,
    slowdown: float | Floats = 1.0,
) -> Prediction:
    """Throughput and latency of a join in each interval of a trace.

    `window` is that of both streams, or those of R and of S. Without `batch` this is the paper's
    model as it stands: a tuple is processed when it is ready. With it, it is that of an engine of
    micro-batches, and latency is from the arrival of a tuple to the commit of the batch that
    answers it: `latency_in` is the wait until the tuple is ready (strictly, as Tidegate has it),
    `latency_batch` the wait for its batch and what the batch takes but for comparisons,
    `latency_join` what those of its batch take. A batch has its output at once, so `latency_out` is
    nothing. And tuples meet windows as they are in the middle of an interval; in the paper, as they
    are at its end. `slowdown` is for batches only: how many times as long as their costs say they
    take, always or in each interval.
    """
    number = instances_of(instances, len(trace))
    check_trace(trace)
    check_costs(costs)
    check_quota(quota)
    slow = slowdown_of(slowdown, len(trace))
    held_r, held_s = window if isinstance(window, tuple) else (window, window)
    rate_r, rate_s = trace.r.sum(axis=1), trace.s.sum(axis=1)  # equation 19
    window_r = held_r.contents(rate_r, trace.step_s)
    window_s = held_s.contents(rate_s, trace.step_s)
    many = number.astype(np.float64)
    if batch is None:
        arriving = comparisons(rate_r, rate_s, window_r, window_s, trace.step_s)
        work = done(arriving, capacity(many, quota, costs.comparison_s, trace.step_s))
        alone = join_latency(rate_r, rate_s, window_r, window_s, many, costs)
        throughput = work.made / trace.step_s
        latency_join = work.delayed(alone, trace.step_s)
        latency_batch = np.zeros(len(trace))
        latency_out = (
            output_latency(throughput * costs.sigma, rate_r + rate_s, many)
            if deterministic
            else np.zeros(len(trace))
        )
    else:
        middle_r, middle_s = in_the_middle(window_r), in_the_middle(window_s)
        arriving = comparisons(rate_r, rate_s, middle_r, middle_s, trace.step_s)
        times = batch_times(
            (rate_r + rate_s) * trace.step_s,
            arriving,
            many,
            slow,
            quota=quota,
            costs=costs,
            batching=batch,
            step_s=trace.step_s,
        )
        throughput = times.made / trace.step_s
        latency_join = times.working_s
        latency_batch = times.waiting_s + times.moving_s
        latency_out = np.zeros(len(trace))
    return Prediction(
        times=trace.times,
        window_r=window_r,
        window_s=window_s,
        comparisons=arriving,
        throughput=throughput,
        latency_in=_ready_latency(trace, deterministic, strict=batch is not None),
        latency_join=latency_join,
        latency_out=latency_out,
        latency_batch=latency_batch,
        instances=number,
    )


def _ready_latency(trace: Trace, deterministic: bool, *, strict: bool) -> Floats:
    if not deterministic:
        return np.zeros(len(trace))
    return input_latency(np.concatenate((trace.r, trace.s), axis=1), strict=strict)
