"""A policy over a made-up, simulated or recorded load, without a query."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.elastic.policy import Policy
from tidegate.elastic.request import Request
from tidegate.model.join.simulation import Counts, JoinModel
from tidegate.model.join.trace import Trace
from tidegate.model.observation import InstanceLoad, Observation
from tidegate.route.mapping import Mapping as Owners
from tidegate.route.mapping import even

BUCKETS = 1_024
"""Of a simulated join."""

_TUPLES_PER_S = 1_000_000
"""What takes a second of CPU time is seen as so many tuples, done or waiting."""


@dataclass(frozen=True)
class DrivenBatch:
    """One batch of a trace: what was observed in it, and what the policy asked for after it."""

    observed: Observation
    requests: tuple[Request, ...]
    waiting_s: float
    """CPU seconds of work that no instance had the time for."""

    @property
    def instances(self) -> int:
        return self.observed.mapping.instances

    @property
    def utilisation(self) -> float:
        """The mean of the instances."""
        return float(self.observed.utilisation.mean())

    @property
    def imbalance(self) -> float:
        """The standard deviation of the instances' utilisations."""
        return float(self.observed.utilisation.std())


def drive(
    policy: Policy,
    arriving: Iterable[Sequence[float] | npt.NDArray[np.float64]],
    *,
    instances: int = 1,
    mapping: Owners | None = None,
    period_s: float = 1.0,
    slots: int | None = None,
    memory: Mapping[str, Any] | None = None,
) -> list[DrivenBatch]:
    """Let a policy decide over a trace; `arriving` has the CPU seconds by bucket of each batch.

    An instance has `period_s` of CPU time in a batch. What is more waits for the next one, with its
    bucket, and is seen as the backlog. A request takes effect with the next batch, as in a query;
    the memory of the policy goes through JSON, as through a manifest. The load depends on nothing
    else: a switch costs nothing.
    """
    known: Mapping[str, Any] = memory or {}
    found: list[DrivenBatch] = []
    waiting: npt.NDArray[np.float64] | None = None
    for batch, work in enumerate(arriving):
        asked = np.asarray(work, np.float64) + (0.0 if waiting is None else waiting)
        mapping = mapping or even(len(asked), instances)
        done = _done(asked, mapping, period_s)
        waiting = asked - done
        seen = _seen(batch, done, waiting, mapping, period_s, slots)
        decision = policy.decide((seen,), known)
        known = json.loads(json.dumps(decision.memory))
        found.append(DrivenBatch(seen, tuple(decision.requests), float(waiting.sum())))
        for request in decision.requests:
            mapping = request.change.after(mapping, (done / period_s).tolist())
    return found


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


def switches(driven: Sequence[DrivenBatch]) -> int:
    """How often the mapping changed on the way."""
    epochs = [one.observed.mapping.epoch for one in driven]
    return sum(a != b for a, b in itertools.pairwise(epochs))


def _done(
    asked: npt.NDArray[np.float64], mapping: Owners, period_s: float
) -> npt.NDArray[np.float64]:
    """What instances have the time for, of each of their buckets the same part."""
    wanted = np.bincount(mapping.owner_array, weights=asked, minlength=mapping.instances)
    part = np.minimum(period_s / np.maximum(wanted, period_s), 1.0)
    return asked * part[mapping.owner_array]


def _seen(
    batch: int,
    done: npt.NDArray[np.float64],
    waiting: npt.NDArray[np.float64],
    mapping: Owners,
    period_s: float,
    slots: int | None,
) -> Observation:
    cpu_s = np.bincount(mapping.owner_array, weights=done, minlength=mapping.instances)
    return Observation(
        subquery="aggregate",
        batch=batch,
        seconds=float(cpu_s.max()),
        period_s=period_s,
        mapping=mapping,
        instances=tuple(InstanceLoad(float(one), 0) for one in cpu_s),
        buckets=done,
        backlog=round(float(waiting.sum()) * _TUPLES_PER_S),
        slots=slots,
        taken=round(float(done.sum()) * _TUPLES_PER_S),
    )
