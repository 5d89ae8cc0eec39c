"""A policy over the work of a simulated join, between `tidegate simulate` and what it decides."""

from __future__ import annotations

import numpy as np

from tidegate.elastic.driven import drive
from tidegate.elastic.policy import Policy
from tidegate.model.join.simulation import Counts, JoinModel
from tidegate.model.join.trace import Trace

BUCKETS = 1_024


def simulated(policy: Policy, join: JoinModel, trace: Trace, *, first: int) -> Counts:
    """The instances of each interval, where a policy decides after each about the next.

    It sees how busy instances were, each with an even share of the work, and with the part of the
    interval that is for the join. What they have no time for waits. A switch costs nothing.
    """
    work_s = join.work(trace) * join.costs.comparison_s
    share = join.quota * join.free_s(trace) / trace.step_s
    load = (np.full(BUCKETS, one / BUCKETS) for one in work_s / share)
    driven = drive(policy, load, instances=first, period_s=trace.step_s)
    return np.array([one.instances for one in driven], np.int64)
