"""What a join has to do, what it gets done, and how long its output takes: equations 4 to 15 and
22 to 26.

Work that its interval has no time for is residual, and is made up for in the order of arrival. The
paper keeps rho and w for every pair of intervals; because the order is FIFO, two running sums tell
the same, and the work is in proportion to the number of intervals, also in long overload.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.operation import Floats


def comparisons(
    rate_r: Floats, rate_s: Floats, window_r: Floats, window_s: Floats, step_s: float
) -> Floats:
    """c_i = (omega_i^S r_i + omega_i^R s_i) Delta_t of all instances, equations 4, 22 and 23."""
    made: Floats = (window_s * rate_r + window_r * rate_s) * step_s
    return made


@dataclass(frozen=True)
class WorkDone:
    """What of the work is done when; all in comparisons, with an item for each interval.

    `made` is done within an interval, y_i (equation 15), and `left` is the residual at its end: the
    sum of rho_{i,m} over m (equation 12).
    """

    arriving: Floats
    made: Floats
    left: Floats

    def delayed(self, values: Floats, step_s: float) -> Floats:
        """Values of the intervals in which work arrived, where it is done, with its delay.

        The sum over m of w_{i,m} / w_i (value_m + (i - m) Delta_t), equation 14; NaN where nothing
        is done.
        """
        kept_up = (self.left == 0) & (np.concatenate(([0.0], self.left[:-1])) == 0)
        result = np.where(self.made > 0, values, np.nan)
        if kept_up.all():
            return result
        arrived_until = np.cumsum(self.arriving)
        done_until = np.maximum.accumulate(np.maximum(arrived_until - self.left, 0.0))
        # Pieces of work that arrived in one interval and were done in one: both sums are cut at
        # the items of either, so there are at most two pieces to an interval.
        cuts = np.union1d(arrived_until, done_until)
        cuts = cuts[cuts <= done_until[-1]]
        middles = (cuts + np.concatenate(([0.0], cuts[:-1]))) / 2
        lengths = np.diff(cuts, prepend=0.0)
        m = np.searchsorted(arrived_until, middles)
        i = np.searchsorted(done_until, middles)
        latencies = values[m] + (i - m) * step_s
        real = lengths > 0
        sums = np.bincount(i[real], (lengths * latencies)[real], len(values))
        weights = np.bincount(i[real], lengths[real], len(values))
        with np.errstate(invalid="ignore", divide="ignore"):
            averages = sums / weights
        return np.where(kept_up, result, np.where(weights > 0, averages, np.nan))


def done(arriving: Floats, capacity: Floats) -> WorkDone:
    """What is done of the work that arrives, where each interval has time for so many comparisons.

    The capacity of n_i instances is n_i Theta Delta_t / (alpha + sigma beta). The residual is that
    of a queue (Lindley's recursion), which its lowest point so far gives at once.
    """
    if np.isinf(capacity).any():
        return WorkDone(arriving, arriving, np.zeros_like(arriving))
    # Lindley: left_i = max(left_{i-1} + arriving_i - capacity_i, 0), for all i at once.
    surplus = np.cumsum(arriving - capacity)
    left = surplus - np.minimum(np.minimum.accumulate(surplus), 0.0)
    before = np.concatenate(([0.0], left[:-1]))
    return WorkDone(arriving, np.maximum(arriving + before - left, 0.0), left)


def capacity(
    instances: Floats | np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    quota: float,
    comparison_s: float,
    step_s: float,
) -> Floats:
    """The comparisons that n_i instances have time for in an interval, equations 6 and 10."""
    seconds = np.asarray(instances, np.float64) * quota * step_s
    return seconds / comparison_s if comparison_s > 0 else np.full_like(seconds, np.inf)


def scan_latency(held: Floats, costs: JoinCosts) -> Floats:
    """The mean latency of the output of one tuple that meets so many others, equations 7 and 8.

    Every 1/sigma-th comparison gives an output tuple, which has to wait for the comparisons and the
    output before it: (sigma omega + 1) (alpha + sigma beta) / (2 sigma).
    """
    if costs.sigma == 0:
        return np.full_like(held, np.nan)
    latency: Floats = (costs.sigma * held + 1) * costs.comparison_s / (2 * costs.sigma)
    return latency


def join_latency(
    rate_r: Floats,
    rate_s: Floats,
    window_r: Floats,
    window_s: Floats,
    instances: Floats,
    costs: JoinCosts,
) -> Floats:
    """l-hat_i of work that need not wait for other work, equations 9 and 24.

    The mean over the tuples that arrive: one of R meets the window of S, and the other way round.
    Each of n instances has an n-th of a window, and scans its part beside the others. NaN where no
    tuple arrives, or none has output.
    """
    arriving = rate_r + rate_s
    with np.errstate(invalid="ignore", divide="ignore"):
        share_r = rate_r / arriving
        latency: Floats = share_r * scan_latency(window_s / instances, costs) + (
            1 - share_r
        ) * scan_latency(window_r / instances, costs)
    return latency


def output_latency(output_rate: Floats, input_rate: Floats, instances: Floats) -> Floats:
    """l_i^out where n_i instances make `output_rate` output tuples a second together.

    An instance gives output at the rate o = min(its share, the rate of the input), because what one
    input tuple completes comes at once. All have the same period 1/o. In each, the output of the
    instance that is first waits for nothing but the offsets, which are tiny, and that of the others
    for the next output of the first: (n - 1) / n periods on average. With equal periods that is so
    for any offsets, so none has to be chosen. NaN where several instances have no output.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        period_s = 1 / np.minimum(output_rate / instances, input_rate)
        waits = (instances - 1) / instances * period_s
    return np.where(instances == 1, 0.0, np.where(np.isfinite(waits), waits, np.nan))
