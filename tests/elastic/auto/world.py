"""A query as a few numbers, for the machine alone: no estimates, no policy, no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf, sqrt

from tidegate.elastic.auto.evidence import Evidence, Saved, SubqueryEvidence
from tidegate.elastic.auto.forecast import Setting
from tidegate.elastic.auto.goal import LatencyGoal
from tidegate.elastic.auto.machine import Machine
from tidegate.elastic.auto.memory import MachineMemory
from tidegate.elastic.auto.remedy import RemedyChoice
from tidegate.model.observation import BatchCadence, ShedSeen, SplitSeen

FIXED_S = 0.02
SAVED = 0.8
INTERVAL_S = 0.5


@dataclass
class World:
    """Work arrives; each batch takes the input of the one before. Changes count from the next."""

    goal: LatencyGoal
    instances: int
    most: int = 40
    most_share: float | None = None
    half_error: float = 0.02
    slowdown: Callable[[int], float] = lambda instances: 1.0
    """How many times as long as the machine thinks so many instances take."""
    beside: float = 0.0
    """What the driver and map tasks need of a second, and `beside_saved` what shedding saves."""
    beside_saved: float = 0.0
    unseen: Saved = field(default_factory=lambda: Saved(0.4, 0.0))
    """What shedding is thought to save of that before it was seen."""
    limit: int | None = None
    """What a budget leaves."""
    cadence: BatchCadence = field(default_factory=lambda: BatchCadence(0.1))
    own_cadence: BatchCadence | None = None
    rate: float = 1_000.0
    hottest: float = 0.0
    """The part of the work that one key is, where keys may be split only `splits` it."""
    splits: bool | None = None
    state_bytes: int = 0
    memory_bytes: int | None = None
    share: float = 0.0
    shed_batches: int = 0
    at_s: float = 0.0
    cycle_s: float = 0.1
    memory: MachineMemory = field(default_factory=MachineMemory)
    changes: list[tuple[float, RemedyChoice]] = field(default_factory=list)
    latency_s: float = 0.0
    waited_s: float = 0.0
    worst_s: float = 0.0
    batch: int = 0
    seen: Evidence = field(init=False)
    """That of the newest interval."""

    def run(self, works: Iterable[float], seconds: float) -> None:
        """Each work for so many seconds."""
        for work in works:
            until_s = self.at_s + seconds
            while self.at_s < until_s:
                self._batch(work)

    def _batch(self, work: float) -> None:
        load = work * (1 - SAVED * self.share) / self.instances * self.slowdown(self.instances)
        load *= self.skew
        load += self.beside * (1 - self.beside_saved * self.share)
        self.shed_batches += self.share > 0
        most_s = inf if self.cadence.rows is None else self.cadence.rows / self.rate
        taken_s = min(self.cycle_s, most_s)
        batch_s = FIXED_S + load * taken_s
        self.latency_s = self.cycle_s + batch_s
        passed_s = max(batch_s, self.cadence.trigger_s)
        self.cycle_s += passed_s - taken_s
        self.at_s += passed_s
        self.waited_s += passed_s
        self.worst_s = max(self.worst_s, self.latency_s)
        self.batch += 1
        if self.waited_s >= INTERVAL_S:
            self.waited_s = 0.0
            self._decide(work)

    @property
    def skew(self) -> float:
        """How many times an even part of the work the busiest instance has."""
        return 1.1 if self.splits else max(self.hottest * self.instances, 1.0)

    def _decide(self, work: float) -> None:
        shed = None
        if self.most_share is not None:
            share = self.share
            error = self.half_error * sqrt(share / (1 - share)) if share else None
            shed = ShedSeen(share, self.most_share, error, 1 - share if share else None)
        known = self.shed_batches >= 3
        seen = Evidence(
            batch=self.batch,
            at_s=self.at_s,
            subqueries=(
                SubqueryEvidence(
                    name="aggregate",
                    instances=self.instances,
                    work=work * (1.1 if self.splits else 1.0),
                    ahead=work * (1.1 if self.splits else 1.0),
                    beside=self.beside,
                    fixed_s=FIXED_S,
                    skew=1.0 if self.splits else self.skew,
                    hottest=0.0 if self.splits else self.hottest,
                    most=self.most,
                    split=None
                    if self.splits is None
                    else SplitSeen(self.splits, self.splits and self.hottest > 0),
                    state_bytes=self.state_bytes,
                ),
            ),
            backlog_s=self.cycle_s,
            ready_s=0.0,
            cadence=self.cadence,
            own_cadence=self.own_cadence,
            rate=self.rate,
            memory_bytes=self.memory_bytes,
            latency_s=self.latency_s,
            doubt=0.04,
            saved=Saved(SAVED, SAVED),
            saved_beside=Saved(self.beside_saved, self.beside_saved) if known else self.unseen,
            saving_known=known,
            shed=shed,
            half_error=self.half_error if self.share else None,
            limit=self.limit,
        )
        self.seen = seen
        # As through a manifest.
        self.memory = MachineMemory.restored(self.memory.recorded())
        self.memory, chosen = Machine(self.goal).handle(self.memory, seen)
        if chosen is not None:
            self.changes.append((self.at_s, chosen))
            (self.instances,), self.share = chosen.setting.counts, chosen.setting.share
            if chosen.setting.splits is not None:
                self.splits = chosen.setting.splits
            self.cadence = chosen.setting.cadence or self.cadence

    @property
    def setting(self) -> Setting:
        return Setting((self.instances,), self.share)
