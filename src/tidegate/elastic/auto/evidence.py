"""What the machine knows at the end of an interval; it decides over this and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.observation import BatchCadence, ShedSeen, SplitSeen


@dataclass(frozen=True)
class SubqueryEvidence:
    """One subquery: its work at the rates of now, and what that will be if these rates last.

    `work` is in seconds of instances by the second, if nothing is shed, and `ahead` the same in
    `AHEAD_S` seconds, more than that of now while windows fill. `beside` is what the driver and map
    tasks need of a second, and `fixed_s` what a batch takes however small it is. `skew` is the load
    of the busiest instance over the mean, and `hottest` the share of the busiest bucket, which no
    mapping can divide. `most` is how many instances it may have. `split` is None where its
    partitioner cannot be changed. `state_bytes` is what all its instances keep together. `paces` is
    how many times as long as the fastest each instance takes for its work, where that has lasted.
    """

    name: str
    instances: int
    work: float
    ahead: float
    beside: float
    fixed_s: float
    skew: float
    hottest: float
    most: int
    even: bool = False
    """Whether its work is even with any mapping, as that of a join that deals its tuples."""
    split: SplitSeen | None = None
    state_bytes: int = 0
    paces: tuple[float, ...] = ()

    def capacity(self, count: int) -> float:
        """How many instances of full speed so many are worth."""
        slow = self.paces[:count]
        return sum(1 / pace for pace in slow) + count - len(slow)

    @property
    def highest(self) -> float:
        """The work to be ready for, as far as it is foreseen."""
        return max(self.work, self.ahead)


@dataclass(frozen=True)
class Saved:
    """The part of the work for shed tuples that is saved: what is likely, and what it is at least.

    Below 0, to shed costs more than it saves.
    """

    likely: float
    least: float


@dataclass(frozen=True)
class Evidence:
    """All subqueries of a query after an interval, in the order of the plan.

    - `at_s`: the time since the policy began, counted from batches
    - `backlog_s`: how many seconds of input wait; `rate`: how many rows come in a second
    - `ready_s`: how long tuples wait until they are ready
    - `cadence`: that of the batches now; `own_cadence` is what the user asked for, None where it
      cannot be changed
    - `latency_s`: that of the slowest tuple of the interval, None where none was answered
    - `doubt`: how far the work may be off, as a part of it
    - `saved`: what shedding saves of the work of instances; `saved_beside`: what it saves of the
      work of the driver and map tasks; with `saving_known`, batches have shown both
    - `shed`: None for a query that cannot shed
    - `half_error`: the error where half is shed, None where that was not seen yet
    - `limit`: how many instances the budget of the session leaves now, None without one
    - `memory_bytes`: what an instance's process may hold, None where that is not known
    """

    batch: int
    at_s: float
    subqueries: tuple[SubqueryEvidence, ...]
    backlog_s: float
    ready_s: float
    cadence: BatchCadence
    latency_s: float | None
    doubt: float
    own_cadence: BatchCadence | None = None
    rate: float = 0.0
    saved: Saved = Saved(0.8, 0.5)
    saved_beside: Saved = Saved(0.0, -0.4)
    saving_known: bool = False
    shed: ShedSeen | None = None
    half_error: float | None = None
    limit: int | None = None
    memory_bytes: int | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(one.instances for one in self.subqueries)

    @property
    def share(self) -> float:
        """What is shed now."""
        return 0.0 if self.shed is None else self.shed.share

    @property
    def measured_load(self) -> float | None:
        """What is needed of the time: the input that came in a batch, over that which it took.

        None where batches are limited and do not take all that waits.
        """
        if self.latency_s is None:
            return None
        taken_s = max(self.latency_s - self.backlog_s, 1e-3)
        limited = self.cadence.rows is not None and self.backlog_s * self.rate > self.cadence.rows
        return None if limited else self.backlog_s / taken_s

    @property
    def splits(self) -> bool | None:
        """Whether keys may be split now; None where no partitioner can be changed."""
        allowed = [one.split.allowed for one in self.subqueries if one.split is not None]
        return all(allowed) if allowed else None

    @property
    def unshed(self) -> tuple[float, ...]:
        """The work of each subquery that there would be if nothing were shed."""
        return tuple(one.work for one in self.subqueries)
