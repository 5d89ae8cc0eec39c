"""What a whole query does at rates that last, from the costs and workloads of its subqueries.

The subqueries of a batch run in turn, so a batch takes the sum of what they take. A batch that
starts when the one before has ended takes what arrived meanwhile. With `fixed` seconds for any
batch and `load` seconds of work for each second of input, batches of `D` seconds have work for
`fixed + load * D` seconds, and that is `D = fixed / (1 - load)` when they have settled. A tuple
waits `D / 2` for its batch on average and `D` for the commit, after it was ready; longer where
batches vary (`scatter.py`). With a trigger that lets batches start every `P` seconds, and work for
less than that, they have the input of `P`: `P / 2` and `fixed + load * P`. This is the extension of
docs/model.md to micro-batches, for operators of all kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tidegate.model.cost.calibration import Estimate
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.fit import Fit, student
from tidegate.model.join.readiness import input_latency
from tidegate.model.operation import Floats
from tidegate.model.scatter import settled_share
from tidegate.model.sizing.workload import Counts, Workload

_DRAWS = np.random.default_rng(20).standard_normal((2_000, 2))
"""Errors of the two parts of a batch, in standard errors; the same in all predictions."""

_MOST_FACTOR = 2.0**40
"""Rates that are so many times as high have no limit."""


@dataclass(frozen=True)
class SubqueryModel:
    """One subquery: what it is fed with, what follows from that, and what it costs.

    `feeds` has for each input the name of a stream or of an earlier subquery, and `taken` says how
    many of the rows that earlier ones put out it takes. Its rows are output where it is `last`.
    """

    name: str
    feeds: tuple[str, ...]
    workload: Workload
    estimator: Estimator
    taken: float = 1.0
    last: bool = True


@dataclass(frozen=True)
class Steady:
    """What a query does at rates that last, with so many instances of each subquery.

    `load` is how many seconds of work a second of input makes: from 1 on, it falls behind. A batch
    takes `batch_s`, and tuples `latency_s` from arrival to commit on average, `ready_s` of it until
    they are ready. Both are infinite where it falls behind. `floor_s` is what a batch takes
    however small it is.
    """

    load: Estimate
    batch_s: Estimate
    latency_s: Estimate
    floor_s: Estimate
    ready_s: float

    @property
    def keeps_up(self) -> bool:
        """Whether it does, also where its costs are as high as they may well be."""
        return self.load.high < 1


@dataclass
class _Batch:
    """The two parts of a batch, a constant and one for each second of input, and their errors."""

    costs: Floats = field(default_factory=lambda: np.zeros(2))
    covariance: Floats = field(default_factory=lambda: np.zeros((2, 2)))
    freedom: float = math.inf
    scattering: list[tuple[float, Floats]] = field(default_factory=list)
    """What was added, each with its scatter."""

    def add(self, fit: Fit, fixed: Floats, load: Floats) -> None:
        """What costs of a fit come to: so often in each batch, so often in each second."""
        parts = np.stack((fixed, load))
        costs = parts @ fit.costs
        self.costs += costs
        self.covariance += parts @ fit.covariance @ parts.T
        self.freedom = min(self.freedom, fit.freedom)
        self.scattering.append((fit.scatter, costs))

    @property
    def scatter(self) -> float:
        """The standard deviation of batches that have settled, as a part of what they take."""
        fixed, load = self.costs
        seconds = np.array([1.0, fixed / (1 - load) if load < 1 else 1.0])
        whole = float(self.costs @ seconds)
        parts = (of * float(costs @ seconds) for of, costs in self.scattering)
        return math.hypot(*parts) / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class QueryModel:
    """The subqueries of a query, each after those that feed it.

    `streams` has for each stream how many sources it has. `beside` knows what batches take beside
    the work of instances: for the tuples that all subqueries take, and the rows that leave the
    query. `slots` is how many instances run at once, None where all do, and `trigger_s` the least
    time between the starts of two batches.
    """

    streams: Mapping[str, int]
    subqueries: tuple[SubqueryModel, ...]
    beside: Estimator
    slots: int | None = None
    trigger_s: float = 0.0

    def steady(self, rates: Mapping[str, float], instances: Mapping[str, int]) -> Steady:
        """At rates of the streams in tuples a second, with instances by subquery."""
        batch = self._batch(rates, instances)
        ready_s = self._ready_s(rates)
        each = sum(rates.values())
        center = batch.costs
        drawn = center + _DRAWS @ _root(batch.covariance).T * (student(batch.freedom) / student())
        drawn = np.maximum(drawn, 0.0)
        seconds, latencies = self._settled(drawn[:, 0], drawn[:, 1], each, batch.scatter)
        value_s, latency_s = self._settled(center[:1], center[1:], each, batch.scatter)
        return Steady(
            load=_between(float(center[1]), drawn[:, 1]),
            batch_s=_between(float(value_s[0]), seconds),
            latency_s=_between(ready_s + float(latency_s[0]), ready_s + latencies),
            floor_s=_between(float(center[0]), drawn[:, 0]),
            ready_s=ready_s,
        )

    def limit(self, rates: Mapping[str, float], instances: Mapping[str, int]) -> Estimate:
        """How many times these rates it can keep up with; infinite where there is no limit."""

        def load(factor: float) -> Estimate:
            return self.steady(_times(rates, factor), instances).load

        return Estimate(
            _largest(lambda factor: load(factor).value < 1),
            _largest(lambda factor: load(factor).high < 1),
            _largest(lambda factor: load(factor).low < 1),
        )

    def within(
        self, latency_s: float, rates: Mapping[str, float], instances: Mapping[str, int]
    ) -> float:
        """How many times these rates it has with such a latency; 0 where it never has."""

        def fits(factor: float) -> bool:
            return self.steady(_times(rates, factor), instances).latency_s.value <= latency_s

        # Slow streams wait long until they are ready: the latency first falls with the rates.
        begins = next((2.0**-n for n in range(41) if fits(2.0**-n)), 0.0)
        return _largest(fits, begins) if begins else 0.0

    def _batch(self, rates: Mapping[str, float], instances: Mapping[str, int]) -> _Batch:
        batch, made = _Batch(), dict(rates)
        tuples = outputs = 0.0
        for subquery in self.subqueries:
            feeds = [
                made[feed] * (1.0 if feed in self.streams else subquery.taken)
                for feed in subquery.feeds
            ]
            now = subquery.workload.counts(feeds)
            tuples += now.tuples
            outputs += now.outputs if subquery.last else 0.0
            made[subquery.name] = now.outputs
            self._add_work(batch, subquery, now, instances[subquery.name])
        each_second = np.array([0.0, tuples, outputs])
        batch.add(self.beside.rest_fit, np.array([1.0, 0, 0]), each_second)
        return batch

    def _add_work(
        self, batch: _Batch, subquery: SubqueryModel, now: Counts, instances: int
    ) -> None:
        """What the instances of a subquery take; those that do not fit side by side take turns.

        Of one that has had no tuples nothing is known.
        """
        estimator = subquery.estimator
        if not estimator.batches:
            return
        turns = instances / min(instances, self.slots or instances) * estimator.skew
        seen = now.tuples if estimator.everywhere else now.tuples / instances
        work = np.array([0.0, seen, now.compared / instances, now.outputs / instances])
        batch.add(estimator.work_fit, np.array([1.0, 0, 0, 0]) * turns, work * turns)

    def _settled(
        self, fixed: Floats, load: Floats, rate: float, scatter: float
    ) -> tuple[Floats, Floats]:
        """What batches take, and how long tuples wait for one and for its commit.

        Where tuples are so rare that a batch is over before the next comes, each has one of its
        own.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            paced = np.where(load < 1, fixed / (1 - load), np.inf)
            vary = np.where(load < 1, settled_share(scatter, load), 0.0)
        batch, latency = paced, paced * (1.5 + vary * (0.5 + load))
        if self.trigger_s > 0:
            triggered = fixed + load * self.trigger_s
            waits = paced <= self.trigger_s
            batch = np.where(waits, triggered, batch)
            latency = np.where(waits, self.trigger_s / 2 + triggered, latency)
        alone = np.maximum(paced, self.trigger_s) * rate < 1
        single = fixed + load / rate
        return np.where(alone, single, batch), np.where(alone, single, latency)

    def _ready_s(self, rates: Mapping[str, float]) -> float:
        """How long tuples wait until they are ready, with the sources of a stream all alike."""
        every = [rates[s] / n for s, n in self.streams.items() for _ in range(n)]
        if len(every) == 1:
            return 1 / every[0]
        return float(input_latency(np.array([every]), strict=True)[0])


def _between(value: float, drawn: Floats) -> Estimate:
    low, high = np.quantile(drawn, (0.025, 0.975), method="nearest")
    return Estimate(value, min(float(low), value), max(float(high), value))


def _root(covariance: Floats) -> Floats:
    """A matrix that makes errors with this covariance of independent ones."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _largest(fits: Callable[[float], bool], factor: float = 1.0) -> float:
    """The largest factor that fits, within a thousandth; smaller ones all do."""
    while not fits(factor):
        factor /= 2
        if factor < 1 / _MOST_FACTOR:
            return 0.0
    low, high = factor, 2 * factor
    while fits(high):
        low, high = high, 2 * high
        if high > _MOST_FACTOR:
            return math.inf
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _times(rates: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: rate * factor for name, rate in rates.items()}
