"""Turns the counters of a committed batch into the load of its instances and buckets.

A batch leaves a few numbers of it. What they mean for each bucket is worked out when somebody asks,
or for several batches at a time: small batches are not to wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.source_watch import SubqueryArrivals, inputs_of
from tidegate.elastic.load import RecentLoad
from tidegate.elastic.observation import InstanceLoad, Observation
from tidegate.elastic.rates import Arrived
from tidegate.execute.job import Job, Outcome
from tidegate.gate.backlog import Backlog
from tidegate.operate.bucket_work import divided
from tidegate.plan.physical import Subquery
from tidegate.route.mapping import Mapping

_MOST_WAITING = 32
"""After so many batches their loads are worked out, asked for or not."""


class InstanceCounts(NamedTuple):
    """What one instance counted in a batch; times are of CPU.

    `compared` are pairs that were looked at, `taken` the tuples that map tasks took, `left` and
    `right` those of a join's sides, `closed` the groups of windows that ended.
    """

    cpu_us: int
    map_cpu_us: int
    tuples: int
    comparisons: int
    outputs: int
    compared: int
    taken: int
    left: int
    right: int
    closed: int

    @staticmethod
    def of(outcome: Outcome) -> InstanceCounts:
        told = {**outcome.counts, "tuples": outcome.tuples}
        return InstanceCounts(*[told.get(name, 0) for name in InstanceCounts._fields])


class CostDrivers(NamedTuple):
    """What batches cost for, as in a `Sample`: tuples, pairs that were compared, outputs."""

    tuples: int
    compared: int
    outputs: int


@dataclass(frozen=True)
class Measured:
    """One batch of one subquery, as it was measured; `counts` and `work` are those of instances.

    `between_s` is the part of the period before it in which there was input already. `span_us` are
    the frontiers before and after it, `arriving` is what came to it.
    """

    subquery: Subquery
    batch: int
    seconds: float
    period_s: float
    between_s: float
    mapping: Mapping
    span_us: tuple[int, int]
    counts: tuple[InstanceCounts, ...]
    work: tuple[bytes, ...]
    arriving: SubqueryArrivals
    backlog: int | None

    @staticmethod
    def of(
        job: Job,
        outcomes: Sequence[Outcome],
        times: tuple[float, float, float],
        arriving: SubqueryArrivals,
        backlog: Backlog | None = None,
    ) -> Measured:
        """`outcomes` are those of all its instances, in their order.

        `times` are its seconds, its period, and what of that was between batches.
        """
        seconds, period_s, between_s = times
        return Measured(
            subquery=job.subquery,
            batch=job.batch,
            seconds=seconds,
            period_s=period_s,
            between_s=between_s,
            mapping=job.mapping,
            span_us=(job.previous_us, job.frontier_us),
            counts=tuple(InstanceCounts.of(outcome) for outcome in outcomes),
            work=tuple(outcome.bucket_work for outcome in outcomes),
            arriving=arriving,
            backlog=waiting_rows(backlog),
        )

    @property
    def busiest_s(self) -> float:
        """The CPU time of its busiest instance."""
        return max(counts.cpu_us for counts in self.counts) / 1e6

    def observation(self) -> Observation:
        """What it says of instances and buckets.

        What map tasks did is no instance's and moves with no bucket: each instance, and so each of
        its buckets, has an even part of it. Instances that only finish what they began before a
        switch have no buckets, and are left out.
        """
        instances = self.mapping.instances
        owning = self.counts[:instances]
        map_s = sum(counts.map_cpu_us for counts in self.counts) / 1e6 / instances
        own_s = [counts.cpu_us / 1e6 for counts in owning]
        return Observation(
            subquery=self.subquery.name,
            batch=self.batch,
            seconds=self.seconds,
            period_s=self.period_s,
            mapping=self.mapping,
            instances=tuple(
                InstanceLoad(c.cpu_us / 1e6 + map_s, c.tuples, c.comparisons, c.outputs, c.compared)
                for c in owning
            ),
            buckets=divided(own_s, map_s, self.work[:instances], self.mapping),
            backlog=self.backlog,
        )

    @property
    def made(self) -> int:
        """What it did: comparisons of a join, tuples of another operator."""
        joins = self.subquery.operator.operation.windows
        return sum(counts.comparisons if joins else counts.taken for counts in self.counts)

    @property
    def due(self) -> CostDrivers:
        """What it has to be paid for."""
        closes = self.subquery.operator.operation.slide_s
        return CostDrivers(
            sum(counts.taken for counts in self.counts),
            sum(counts.compared for counts in self.counts),
            sum(counts.closed if closes else counts.outputs for counts in self.counts),
        )

    def came(self) -> Arrived:
        """What came in, and nothing else of it."""
        operation = self.subquery.operator.operation
        inputs = inputs_of(self.subquery, self.arriving, operation)
        sides = self._sides if operation.windows else ()
        return Arrived.from_inputs(self.period_s, inputs, sides, self.event_s)

    @property
    def _sides(self) -> tuple[int, int]:
        """The tuples of a join's sides, after any filter."""
        return sum(c.left for c in self.counts), sum(c.right for c in self.counts)

    @property
    def event_s(self) -> float | None:
        """The event time that passed; None at either end of the input."""
        previous_us, frontier_us = self.span_us
        known = previous_us != MIN_US and frontier_us != MAX_US
        return (frontier_us - previous_us) / 1e6 if known else None

    def in_full(self) -> Observation:
        """The same with what came in, for those who decide or predict by it."""
        operation = self.subquery.operator.operation
        return replace(
            self.observation(),
            inputs=inputs_of(self.subquery, self.arriving, operation),
            sides=self._sides if operation.windows else (),
            operation=operation,
            taken=sum(counts.taken for counts in self.counts),
            closed=sum(counts.closed for counts in self.counts) if operation.slide_s else None,
            event_s=self.event_s,
            map_s=sum(counts.map_cpu_us for counts in self.counts) / 1e6,
            between_s=self.between_s,
        )


def observed_of(every: Sequence[Measured]) -> tuple[Observation, ...]:
    """All subqueries of one batch in full, with what others took of its time."""
    whole_s = sum(measured.busiest_s for measured in every)
    return tuple(
        replace(one.in_full(), others_s=max(whole_s - one.busiest_s, 0.0)) for one in every
    )


class LoadLog:
    """The load of a subquery over the batches of a run; calls may come from several threads.

    Holds a bounded number of batches.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Measured] = []
        self._load: RecentLoad | None = None

    def add(self, measured: Measured) -> None:
        """One more batch, which was committed."""
        with self._lock:
            self._waiting.append(measured)
            if len(self._waiting) >= _MOST_WAITING:
                self._take_in()

    def load(self) -> RecentLoad | None:
        """With all batches so far; None before the first."""
        with self._lock:
            self._take_in()
            return self._load

    def _take_in(self) -> None:
        for measured in self._waiting:
            before = self._load or RecentLoad.none(measured.mapping)
            self._load = before.after(measured.observation())
        self._waiting.clear()


def waiting_rows(backlog: Backlog | None) -> int | None:
    """The tuples that wait; None where no source is live, or only bytes or files are known."""
    if backlog is None:
        return None
    rows, others = backlog.total["rows"], backlog.total["bytes"] + backlog.total["files"]
    return rows if rows or not others else None
