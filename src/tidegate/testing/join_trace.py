"""Runs a policy over a simulated join, without a query: rates in, requested instances out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tidegate.elastic.dry_run import DrivenBatch
from tidegate.elastic.policy import Policy
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.observation import InputLoad, InstanceLoad, Observation
from tidegate.model.operation import Lookback, Operation
from tidegate.route.mapping import Mapping as Owners
from tidegate.route.mapping import even


def drive_join(
    policy: Policy,
    rates: Iterable[tuple[float, float]],
    *,
    window: Lookback,
    costs: JoinCosts | Iterable[JoinCosts],
    instances: int = 1,
    buckets: int = 64,
    period_s: float = 1.0,
    slots: int | None = None,
    memory: Mapping[str, Any] | None = None,
) -> list[DrivenBatch]:
    """Let a policy decide over a join of two live streams, given the rates of each batch.

    The join compares each tuple with the window of the other stream, as the model says. Each
    instance has the time of a batch minus the driver's share; comparisons beyond that wait for the
    next batch. `costs` are those of all batches, or one for each. A request takes effect with the
    next batch, and the memory of the policy goes through JSON, as in a query.
    """
    known: Mapping[str, Any] = memory or {}
    found: list[DrivenBatch] = []
    mapping, waiting = even(buckets, instances), 0.0
    came: list[tuple[float, float]] = []
    each = iter([costs] * 10**6 if isinstance(costs, JoinCosts) else costs)
    for batch, rate in enumerate(rates):
        came.append(rate)
        now = next(each)
        pairs = _pairs(came, window, period_s) + waiting
        free_s = max(period_s * (1 - now.tuple_s * sum(rate)), 0.0)
        made = min(pairs, mapping.instances * free_s / now.comparison_s)
        waiting = pairs - made
        seen = _seen(batch, rate, made, mapping, now, window, period_s, slots)
        decision = policy.decide((seen,), known)
        known = json.loads(json.dumps(decision.memory))
        found.append(DrivenBatch(seen, tuple(decision.requests), waiting * now.comparison_s))
        for request in decision.requests:
            mapping = request.change.after(mapping, [1.0] * buckets)
    return found


def _pairs(came: list[tuple[float, float]], window: Lookback, period_s: float) -> float:
    """The comparisons of the newest batch, equation 4."""
    r, s = np.array(came).T
    held_r, held_s = (float(window.contents(rates, period_s)[-1]) for rates in (r, s))
    return float(r[-1] * held_s + s[-1] * held_r) * period_s


def _seen(
    batch: int,
    rate: tuple[float, float],
    made: float,
    mapping: Owners,
    costs: JoinCosts,
    window: Lookback,
    period_s: float,
    slots: int | None,
) -> Observation:
    count = mapping.instances
    tuples = [round(one * period_s) for one in rate]
    cpu_s = made / count * costs.comparison_s
    pairs, outputs = round(made / count), round(made / count * costs.sigma)
    return Observation(
        subquery="join",
        batch=batch,
        seconds=costs.batch_s + costs.tuple_s * sum(tuples) + cpu_s,
        period_s=period_s,
        mapping=mapping,
        instances=(InstanceLoad(cpu_s, sum(tuples), pairs, outputs, pairs),) * count,
        buckets=np.full(mapping.buckets, cpu_s * count / mapping.buckets),
        slots=slots,
        inputs=tuple(
            InputLoad(side, name, name, tuples[side], tuples[side], side=side)
            for side, name in enumerate("rs")
        ),
        sides=(tuples[0], tuples[1]),
        operation=Operation("join", "scan", (window, window), (0, 1), everywhere=True),
        taken=sum(tuples),
        event_s=period_s,
    )
