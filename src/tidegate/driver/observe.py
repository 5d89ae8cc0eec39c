"""What committed batches showed of a subquery's load, between their outcomes and policies.

A batch leaves a few numbers of it. What they mean for each bucket is worked out when somebody asks,
or for several batches at a time: small batches are not to wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.brought import Arriving, inputs_of
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


@dataclass(frozen=True)
class Measured:
    """One batch of one subquery, as it was measured; `counts` and `work` are those of instances.

    `span_us` are the frontiers before and after it, `arriving` is what came to it.
    """

    subquery: Subquery
    batch: int
    seconds: float
    period_s: float
    mapping: Mapping
    span_us: tuple[int, int]
    counts: tuple[tuple[int, ...], ...]
    work: tuple[bytes, ...]
    arriving: Arriving
    backlog: int | None

    @staticmethod
    def of(
        job: Job,
        outcomes: Sequence[Outcome],
        seconds: float,
        period_s: float,
        arriving: Arriving,
        backlog: Backlog | None = None,
    ) -> Measured:
        """`outcomes` are those of all its instances, in their order."""
        return Measured(
            subquery=job.subquery,
            batch=job.batch,
            seconds=seconds,
            period_s=period_s,
            mapping=job.mapping,
            span_us=(job.previous_us, job.frontier_us),
            counts=tuple(_counts(outcome) for outcome in outcomes),
            work=tuple(outcome.bucket_work for outcome in outcomes),
            arriving=arriving,
            backlog=waiting_rows(backlog),
        )

    @property
    def busiest_s(self) -> float:
        """The CPU time of its busiest instance."""
        return max(counts[0] for counts in self.counts) / 1e6

    def observation(self) -> Observation:
        """What it says of instances and buckets.

        What map tasks did is no instance's and moves with no bucket: each instance, and so each of
        its buckets, has an even part of it. Instances that only finish what they began before a
        switch have no buckets, and are left out.
        """
        instances = self.mapping.instances
        owning = self.counts[:instances]
        map_s = sum(counts[1] for counts in self.counts) / 1e6 / instances
        own_s = [counts[0] / 1e6 for counts in owning]
        return Observation(
            subquery=self.subquery.name,
            batch=self.batch,
            seconds=self.seconds,
            period_s=self.period_s,
            mapping=self.mapping,
            instances=tuple(InstanceLoad(c[0] / 1e6 + map_s, *c[2:6]) for c in owning),
            buckets=divided(own_s, map_s, self.work[:instances], self.mapping),
            backlog=self.backlog,
        )

    @property
    def made(self) -> int:
        """What it did: comparisons of a join, tuples of another operator."""
        place = 3 if self.subquery.operator.operation.windows else 6
        return sum(counts[place] for counts in self.counts)

    def came(self) -> Arrived:
        """What came in, and nothing else of it."""
        operation = self.subquery.operator.operation
        tuples, taken = [0.0, 0.0], [0.0, 0.0]
        for load in inputs_of(self.subquery, self.arriving, operation):
            tuples[load.side] += load.arrived or 0
            taken[load.side] += load.tuples
        left, right = (sum(of) for of in tuple(zip(*self.counts, strict=True))[7:])
        return Arrived(
            seconds=self.period_s,
            tuples=(tuples[0], tuples[1]),
            taken=(taken[0], taken[1]),
            passed=(left, right) if operation.windows else None,
            event_s=self.event_s,
        )

    @property
    def event_s(self) -> float | None:
        """The event time that passed; None at either end of the input."""
        previous_us, frontier_us = self.span_us
        known = previous_us != MIN_US and frontier_us != MAX_US
        return (frontier_us - previous_us) / 1e6 if known else None

    def in_full(self) -> Observation:
        """The same with what came in, for those who decide or predict by it."""
        operation = self.subquery.operator.operation
        taken, *sides = (sum(of) for of in tuple(zip(*self.counts, strict=True))[6:])
        return replace(
            self.observation(),
            inputs=inputs_of(self.subquery, self.arriving, operation),
            sides=tuple(sides) if operation.windows else (),
            operation=operation,
            taken=taken,
            event_s=self.event_s,
            map_s=sum(counts[1] for counts in self.counts) / 1e6,
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


def _counts(outcome: Outcome) -> tuple[int, ...]:
    """CPU time of its own and of map tasks in microseconds, tuples, comparisons, outputs, compared
    pairs, tuples that map tasks took, tuples of a join's sides."""
    get = outcome.counts.get
    cpu_us, map_cpu_us = get("cpu_us", 0), get("map_cpu_us", 0)
    return (
        cpu_us,
        map_cpu_us,
        outcome.tuples,
        get("comparisons", 0),
        get("outputs", 0),
        get("compared", 0),
        get("taken", 0),
        get("left", 0),
        get("right", 0),
    )
