"""What a whole query does at rates that last, from the costs and workloads of its subqueries.

Costs are not known for sure, so every figure comes with an interval: it is worked out for many
guesses of the two parts of a batch, drawn as their errors are distributed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tidegate.model.cost.calibration import Estimate
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.fit import Fit, student
from tidegate.model.cost.sample import WorkCounts
from tidegate.model.join.readiness import mean_ready_s
from tidegate.model.operation import Floats
from tidegate.model.pace import BatchPace
from tidegate.model.sizing.workload import OperatorWorkload
from tidegate.model.speed_up import SpeedUp

_DRAWS = np.random.default_rng(20).standard_normal((2_000, 2))
"""Errors of the two parts of a batch, in standard errors; the same in all predictions."""

_MOST_FACTOR = 2.0**40
"""Rates that are so many times as high have no limit."""

_ANY_NUMBER = 2**20
"""So many instances share all that can be shared."""


@dataclass(frozen=True)
class SubqueryModel:
    """One subquery: what it is fed with, what follows from that, and what it costs.

    `feeds` has for each input the name of a stream or of an earlier subquery, and `taken` says how
    many of the rows that earlier ones put out it takes. Its rows are output where it is `last`.
    """

    name: str
    feeds: tuple[str, ...]
    workload: OperatorWorkload
    estimator: Estimator
    taken: float = 1.0
    last: bool = True


@dataclass(frozen=True)
class SteadyState:
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

    def steady(self, rates: Mapping[str, float], instances: Mapping[str, int]) -> SteadyState:
        """At rates of the streams in tuples a second, with instances by subquery."""
        batch = self._batch(rates, instances)
        errors = _DRAWS @ _root(batch.covariance).T * (student(batch.freedom) / student())
        drawn = np.maximum(batch.costs + errors, 0.0)
        pace = BatchPace(
            fixed_s=np.append(drawn[:, 0], batch.costs[0]),
            load=np.append(drawn[:, 1], batch.costs[1]),
            ready_s=self._ready_s(rates),
            rate=sum(rates.values()),
            trigger_s=self.trigger_s,
            scatter=batch.scatter,
        )
        settled_s = pace.settled_s
        return SteadyState(
            load=_between(pace.load),
            batch_s=_between(pace.or_alone(settled_s, settled_s)),
            latency_s=_between(pace.latency_s(settled_s)),
            floor_s=_between(pace.fixed_s),
            ready_s=pace.ready_s,
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

    def speed_up(self, rates: Mapping[str, float]) -> SpeedUp:
        """What more instances could bring at these rates, in seconds for each second of input.

        Serial is what is left with any number of instances: they do not share it.
        """
        one, any_number = (
            float(replace(self, slots=None)._batch(rates, self._alike(n)).costs[1])
            for n in (1, _ANY_NUMBER)
        )
        return SpeedUp(any_number, max(one - any_number, 0.0))

    def most(self, rates: Mapping[str, float]) -> float:
        """How many times these rates any number of instances could keep up with."""
        return replace(self, slots=None).limit(rates, self._alike(_ANY_NUMBER)).value

    def _alike(self, instances: int) -> dict[str, int]:
        return {subquery.name: instances for subquery in self.subqueries}

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
        self, batch: _Batch, subquery: SubqueryModel, now: WorkCounts, instances: int
    ) -> None:
        """What the instances of a subquery take; those that do not fit side by side take turns.

        Of one that has had no tuples nothing is known.
        """
        estimator = subquery.estimator
        if not estimator.batches:
            return
        turns = instances / min(instances, self.slots or instances) * estimator.skew
        work = np.array(estimator.work_row(now, instances, batches=0.0))
        batch.add(estimator.work_fit, np.array([1.0, 0, 0, 0]) * turns, work * turns)

    def _ready_s(self, rates: Mapping[str, float]) -> float:
        """How long tuples wait until they are ready, with the sources of a stream all alike."""
        return mean_ready_s([rates[s] / n for s, n in self.streams.items() for _ in range(n)])


def _between(guesses: float | Floats) -> Estimate:
    """The last of the guesses is the best; the others say how far off it may be."""
    drawn = np.asarray(guesses)
    low, high = np.quantile(drawn[:-1], (0.025, 0.975), method="nearest")
    value = float(drawn[-1])
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
