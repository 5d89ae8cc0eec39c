"""What a policy remembers of a subquery's load: its average over some batches, as JSON values.

Of the period of a batch instances can use only a part, where the driver and other subqueries have
theirs: the time in which no batch ran, and the time that their own subquery took, which is that of
the busiest instance. So those of a query that is late use all they can, however much of a batch is
not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.model.observation import Observation

_PARTS = 1_000_000
"""Utilisations are remembered in millionths."""


@dataclass(frozen=True)
class Average:
    """What is used by bucket, over batches with one mapping; the newest counts most.

    `buckets` have their CPU time over what instances could use, which is the part `free` of the
    period: their utilisation is `buckets * free`. `batches` and `seconds` say what it rests on.
    `changed` is the newest batch after which a change was asked for, or that had a new mapping;
    None where there was none. What is remembered grows with the buckets of a query.
    """

    epoch: int
    buckets: npt.NDArray[np.float64]
    free: float = 0.0
    batches: int = 0
    seconds: float = 0.0
    changed: int | None = None

    def used(self, owners: npt.NDArray[np.int32], instances: int) -> npt.NDArray[np.float64]:
        """By instance, of a mapping that is there or might be: 1 is all that it can."""
        used = np.bincount(owners, weights=self.buckets, minlength=instances)
        return used.astype(np.float64)

    def asked(self, batch: int) -> Average:
        """The same, after something was asked for."""
        return replace(self, changed=batch)

    def followed(self, seen: Observation, batches: int, seconds: float) -> Average:
        """With one more batch, as a moving average over so many and so long, or a little more.

        A batch with another mapping begins a new one. It is not counted itself: it had the work of
        the switch to do.
        """
        mapping = seen.mapping
        if mapping.epoch != self.epoch or mapping.buckets != len(self.buckets):
            return replace(_nothing(seen), changed=seen.batch)
        if seen.period_s <= 0:
            return self
        # The plain mean of the first ones, so that the very first does not count for several.
        weight = 1 / min(self.batches + 1, max(batches, seconds / seen.period_s))
        busiest_s = max(load.cpu_s for load in seen.instances)
        free_s = min(max(seen.period_s - seen.seconds, 0.0) + busiest_s, seen.period_s)
        free = free_s / seen.period_s
        now = seen.buckets / (free_s or seen.period_s)
        return replace(
            self,
            buckets=np.rint((self.buckets + weight * (now - self.buckets)) * _PARTS) / _PARTS,
            free=round(self.free + weight * (free - self.free), 6),
            batches=self.batches + 1,
            seconds=round(self.seconds + seen.period_s, 6),
        )

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it."""
        parts = np.rint(self.buckets * _PARTS).astype(np.int64).tolist()
        return {**self.__dict__, "buckets": parts}


def remembered(memory: Mapping[str, Any] | None, seen: Observation) -> Average:
    """What `recorded` gave; of a subquery that nothing is known of, an average of no batches."""
    if memory is None:
        return _nothing(seen)
    return Average(**{**memory, "buckets": np.array(memory["buckets"], np.float64) / _PARTS})


def _nothing(seen: Observation) -> Average:
    return Average(int(seen.mapping.epoch), np.zeros(seen.mapping.buckets))
