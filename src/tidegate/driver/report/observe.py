"""Measures the load of a subquery from its committed batches, for policies, status and summary.

Each batch records a few numbers. The load of each bucket is computed from them only when somebody
asks, or for several batches at a time, so that small batches do not wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.report.source_watch import SubqueryArrivals, inputs_of
from tidegate.elastic.load import RecentLoad
from tidegate.execute.job import Job, Outcome
from tidegate.gate.backlog import Backlog
from tidegate.model.cost.sample import WorkCounts
from tidegate.model.live.rates import ArrivalCounts
from tidegate.model.observation import InstanceLoad, Observation
from tidegate.operate.bucket_work import divided
from tidegate.plan.physical import Subquery
from tidegate.route.mapping import Mapping

_MOST_WAITING = 32
"""After so many batches their loads are computed even if nobody asks; this bounds the memory."""

_LEAST_US = 1_000
"""Less CPU time than this says nothing of the pace of an instance."""


@dataclass(frozen=True)
class MeasuredBatch:
    """The measurements of one batch of one subquery.

    `counts` and `work` are by instance. The names in `counts`: `cpu_us` and `map_cpu_us` (CPU
    times), `wall_us` (the time that an instance took by the clock), `tuples`, `outputs`, `taken`
    (tuples that map tasks read), `left` and `right` (tuples of a join's sides), `comparisons`,
    `compared` (pairs that were looked at), and `closed` (groups of windows that ended).

    `between_s` is the time before the batch in which input was already waiting. `span_us` are the
    frontiers before and after it. `arriving` is what arrived for it.
    """

    subquery: Subquery
    batch: int
    seconds: float
    period_s: float
    between_s: float
    mapping: Mapping
    span_us: tuple[int, int]
    counts: tuple[Counter[str], ...]
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
    ) -> MeasuredBatch:
        """Measure a job; `outcomes` are those of all its instances, in their order.

        `times` are the batch's seconds, its period, and the part of that between batches.
        """
        seconds, period_s, between_s = times
        return MeasuredBatch(
            subquery=job.subquery,
            batch=job.batch,
            seconds=seconds,
            period_s=period_s,
            between_s=between_s,
            mapping=job.mapping,
            span_us=(job.previous_us, job.frontier_us),
            counts=tuple(
                Counter({**o.counts, "tuples": o.tuples, "wall_us": round(o.seconds * 1e6)})
                for o in outcomes
            ),
            work=tuple(outcome.bucket_work for outcome in outcomes),
            arriving=arriving,
            backlog=waiting_rows(backlog),
        )

    @property
    def busiest_s(self) -> float:
        """The CPU time of its busiest instance."""
        return max(counts["cpu_us"] for counts in self.counts) / 1e6

    def total(self, name: str) -> int:
        """The sum of a count over all instances."""
        return sum(counts[name] for counts in self.counts)

    def observation(self) -> Observation:
        """The load of instances and buckets.

        The work of map tasks belongs to no instance and does not move with a bucket, so it is
        divided evenly. Former owners have no buckets and are left out.
        """
        instances = self.mapping.instances
        owning = self.counts[:instances]
        map_s = self.total("map_cpu_us") / 1e6 / instances
        own_s = [counts["cpu_us"] / 1e6 for counts in owning]
        return Observation(
            subquery=self.subquery.name,
            batch=self.batch,
            seconds=self.seconds,
            period_s=self.period_s,
            mapping=self.mapping,
            instances=tuple(
                InstanceLoad(
                    counts["cpu_us"] / 1e6 + map_s,
                    counts["tuples"],
                    comparisons=counts["comparisons"],
                    outputs=counts["outputs"],
                    compared=counts["compared"],
                    pace=max(counts["wall_us"] / max(counts["cpu_us"], _LEAST_US), 1.0),
                )
                for counts in owning
            ),
            buckets=divided(own_s, map_s, self.work[:instances], self.mapping),
            backlog=self.backlog,
        )

    @property
    def made(self) -> int:
        """The work done: comparisons of a join, tuples of any other operator."""
        joins = self.subquery.operator.operation.windows
        return self.total("comparisons" if joins else "taken")

    @property
    def due(self) -> WorkCounts:
        """The counts that the cost model charges for."""
        closes = self.subquery.operator.operation.slide_s
        return WorkCounts(
            self.total("taken"),
            self.total("compared"),
            self.total("closed" if closes else "outputs"),
        )

    def came(self) -> ArrivalCounts:
        """The arrivals of the batch, without anything about its work."""
        operation = self.subquery.operator.operation
        inputs = inputs_of(self.subquery, self.arriving, operation)
        sides = self._sides if operation.windows else ()
        return ArrivalCounts.from_inputs(self.period_s, inputs, sides, self.event_s)

    @property
    def _sides(self) -> tuple[int, int]:
        """The tuples of a join's sides, after any filter."""
        return self.total("left"), self.total("right")

    @property
    def event_s(self) -> float | None:
        """The event time that passed; None at either end of the input."""
        previous_us, frontier_us = self.span_us
        known = previous_us != MIN_US and frontier_us != MAX_US
        return (frontier_us - previous_us) / 1e6 if known else None

    def in_full(self) -> Observation:
        """The observation with the arrivals, for policies and predictions."""
        operation = self.subquery.operator.operation
        return replace(
            self.observation(),
            inputs=inputs_of(self.subquery, self.arriving, operation),
            sides=self._sides if operation.windows else (),
            operation=operation,
            taken=self.total("taken"),
            closed=self.total("closed") if operation.slide_s else None,
            event_s=self.event_s,
            map_s=self.total("map_cpu_us") / 1e6,
            between_s=self.between_s,
        )


class LoadLog:
    """The load of a subquery over the batches of a run; calls may come from several threads.

    Holds a bounded number of batches.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[MeasuredBatch] = []
        self._load: RecentLoad | None = None

    def add(self, measured: MeasuredBatch) -> None:
        """Add a committed batch."""
        with self._lock:
            self._waiting.append(measured)
            if len(self._waiting) >= _MOST_WAITING:
                self._take_in()

    def load(self) -> RecentLoad | None:
        """The load over all batches so far; None before the first."""
        with self._lock:
            self._take_in()
            return self._load

    def _take_in(self) -> None:
        for measured in self._waiting:
            before = self._load or RecentLoad.none(measured.mapping)
            self._load = before.after(measured.observation())
        self._waiting.clear()


def waiting_rows(backlog: Backlog | None) -> int | None:
    """The tuples that wait; None if no source is live, or only their bytes or files are known."""
    if backlog is None:
        return None
    rows, others = backlog.total["rows"], backlog.total["bytes"] + backlog.total["files"]
    return rows if rows or not others else None
