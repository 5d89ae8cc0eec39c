"""What committed batches showed of a subquery's load, between their outcomes and policies.

A batch leaves a few numbers of it. What they mean for each bucket is worked out when somebody asks,
or for several batches at a time: small batches are not to wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from tidegate.elastic.load import RecentLoad
from tidegate.elastic.observation import InstanceLoad, Observation
from tidegate.execute.job import Job, Outcome
from tidegate.gate.backlog import Backlog
from tidegate.operate.bucket_work import divided
from tidegate.route.mapping import Mapping

_MOST_WAITING = 32
"""After so many batches their loads are worked out, asked for or not."""


@dataclass(frozen=True)
class Measured:
    """One batch of one subquery, as it was measured; `counts` and `work` are those of instances."""

    subquery: str
    batch: int
    seconds: float
    period_s: float
    mapping: Mapping
    counts: tuple[tuple[int, int, int, int, int], ...]
    work: tuple[bytes, ...]
    backlog: int | None

    @staticmethod
    def of(
        job: Job,
        outcomes: Sequence[Outcome],
        seconds: float,
        period_s: float,
        backlog: Backlog | None = None,
    ) -> Measured:
        """`outcomes` are those of all its instances, in their order."""
        return Measured(
            subquery=job.subquery.name,
            batch=job.batch,
            seconds=seconds,
            period_s=period_s,
            mapping=job.mapping,
            counts=tuple(_counts(outcome) for outcome in outcomes),
            work=tuple(outcome.bucket_work for outcome in outcomes),
            backlog=waiting_rows(backlog),
        )

    def observation(self) -> Observation:
        """What it says of instances and buckets.

        What map tasks did is no instance's and moves with no bucket: each instance, and so each of
        its buckets, has an even part of it.
        """
        map_s = sum(counts[1] for counts in self.counts) / 1e6 / self.mapping.instances
        own_s = [counts[0] / 1e6 for counts in self.counts]
        return Observation(
            subquery=self.subquery,
            batch=self.batch,
            seconds=self.seconds,
            period_s=self.period_s,
            mapping=self.mapping,
            instances=tuple(InstanceLoad(c[0] / 1e6 + map_s, *c[2:]) for c in self.counts),
            buckets=divided(own_s, map_s, self.work, self.mapping),
            backlog=self.backlog,
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


def _counts(outcome: Outcome) -> tuple[int, int, int, int, int]:
    """CPU time of its own and of map tasks in microseconds, tuples, comparisons, outputs."""
    get = outcome.counts.get
    cpu_us, map_cpu_us = get("cpu_us", 0), get("map_cpu_us", 0)
    return cpu_us, map_cpu_us, outcome.tuples, get("comparisons", 0), get("outputs", 0)
