"""What a policy remembers of a subquery's load: its average over some batches, as JSON values.

The average begins anew when the load crosses a threshold, so that a decision rests on batches after
the crossing alone: with the load before it among them, STRETCH's table 2 came out too high when
instances were to go, and too low when there were to be more. A query that falls behind is as busy
as it can be, whatever arrives; so the growth of its backlog counts as load too.

Of the period of a batch instances can use only a part, where the driver and other subqueries have
theirs: the time in which no batch ran, and the time that their own subquery took, which is that of
the busiest instance. So those of a query that is late use all they can, however much of a batch is
not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.model.observation import Observation

_PARTS = 1_000_000
"""Utilisations are remembered in millionths."""

_MOST_BEHIND = 4.0
"""A backlog that grows counts for at most so many times what was done: a burst is not a rate."""

Side = Callable[[float], int]
"""Where an average utilisation lies: -1 below what is wanted, 1 above it, 0 between."""


@dataclass(frozen=True)
class Average:
    """What is used by bucket, over batches with one mapping and on one side of the thresholds.

    `buckets` have their CPU time over what instances could use, which is the part `free` of the
    period: their utilisation is `buckets * free`. `batches` and `seconds` say what it rests on.
    `side` is where they all lie. `changed` is the newest batch after which a change was asked for,
    or that had a new mapping; None where there was none. `sought` is the number of instances that
    the policy asked for last, and `way` 1 where that was more than before, -1 where it was fewer;
    both are 0 where somebody else has changed it since. `backlog` is that of the last batch. What
    is remembered grows with the buckets of a query.
    """

    epoch: int
    buckets: npt.NDArray[np.float64]
    free: float = 0.0
    batches: int = 0
    seconds: float = 0.0
    changed: int | None = None
    side: int = 0
    sought: int = 0
    way: int = 0
    backlog: int | None = None

    def used(self, owners: npt.NDArray[np.int32], instances: int) -> npt.NDArray[np.float64]:
        """By instance, of a mapping that is there or might be: 1 is all that it can."""
        used = np.bincount(owners, weights=self.buckets, minlength=instances)
        return used.astype(np.float64)

    def asked(self, batch: int, before: int, after: int) -> Average:
        """The same, after another mapping was asked for, with so many instances or as many."""
        way = (after > before) - (after < before) or self.way
        return replace(self, changed=batch, sought=after, way=way)

    def followed(self, seen: Observation, batches: int, seconds: float, side_of: Side) -> Average:
        """With one more batch, as a moving average over so many and so long, or a little more.

        A batch on another side begins a new one. So does one with another mapping, which is not
        counted itself: it had the work of the switch to do.
        """
        mapping = seen.mapping
        if mapping.epoch != self.epoch or mapping.buckets != len(self.buckets):
            return self._anew(seen, seen.batch, 0)
        if seen.period_s <= 0:
            return self
        busiest_s = max(load.cpu_s for load in seen.instances)
        free_s = min(max(seen.period_s - seen.seconds, 0.0) + busiest_s, seen.period_s)
        free = free_s / seen.period_s
        now = seen.buckets / (free_s or seen.period_s) * self._behind(seen)
        side = side_of(float(now.sum()) / mapping.instances)
        past = self if side == self.side else self._anew(seen, self.changed, side)
        # The plain mean of the first ones, so that the very first does not count for several.
        weight = 1 / min(past.batches + 1, max(batches, seconds / seen.period_s))
        return replace(
            past,
            buckets=np.rint((past.buckets + weight * (now - past.buckets)) * _PARTS) / _PARTS,
            free=round(past.free + weight * (free - past.free), 6),
            batches=past.batches + 1,
            seconds=round(past.seconds + seen.period_s, 6),
            backlog=seen.backlog,
        )

    def _anew(self, seen: Observation, changed: int | None, side: int) -> Average:
        """An average of no batches, which remembers what the policy did last."""
        own = self.sought == seen.mapping.instances
        return replace(
            _nothing(seen),
            changed=changed,
            side=side,
            sought=self.sought if own else 0,
            way=self.way if own else 0,
            backlog=seen.backlog,
        )

    def _behind(self, seen: Observation) -> float:
        """How many times what was done has arrived, where the backlog has grown; else 1."""
        if seen.backlog is None or self.backlog is None or not seen.taken:
            return 1.0
        return min(1 + max(seen.backlog - self.backlog, 0) / seen.taken, _MOST_BEHIND)

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it."""
        parts = np.rint(self.buckets * _PARTS).astype(np.int64).tolist()
        return {**self.__dict__, "buckets": parts}


def remembered(memory: Mapping[str, Any] | None, seen: Observation) -> Average:
    """What `recorded` gave; of a subquery that nothing is known of, an average of no batches."""
    if memory is None or "side" not in memory:  # as before averages had sides
        return _nothing(seen)
    return Average(**{**memory, "buckets": np.array(memory["buckets"], np.float64) / _PARTS})


def _nothing(seen: Observation) -> Average:
    return Average(int(seen.mapping.epoch), np.zeros(seen.mapping.buckets))
