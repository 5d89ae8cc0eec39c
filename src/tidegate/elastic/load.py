"""Averages the load of a subquery over recent batches, for whoever spreads buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tidegate.model.observation import Observation
    from tidegate.route.mapping import Mapping


HALF_LIFE_S = 10.0
"""After so many seconds of a run, what was observed counts half."""

HOTTEST = 5
"""How many buckets are shown."""


@dataclass(frozen=True)
class RecentLoad:
    """CPU seconds of each bucket and the time they were used in, the newest batches counting most.

    It is of buckets, so that it stays with them when they move; two numbers for each bucket,
    however many batches there were. The same observations in the same order give the same load.
    """

    mapping: Mapping
    cpu_s: npt.NDArray[np.float64]
    period_s: float

    @staticmethod
    def none(mapping: Mapping) -> RecentLoad:
        """Before the first batch of a run."""
        return RecentLoad(mapping, np.zeros(mapping.buckets), 0.0)

    def after(self, observed: Observation) -> RecentLoad:
        """With one more batch, and the mapping that it had."""
        kept = 0.5 ** (observed.period_s / HALF_LIFE_S)
        return RecentLoad(
            observed.mapping,
            self.cpu_s * kept + observed.buckets,
            self.period_s * kept + observed.period_s,
        )

    @property
    def buckets(self) -> npt.NDArray[np.float64]:
        """By bucket, the share of a processor that it takes; zeros before the first batch."""
        return self.cpu_s / self.period_s if self.period_s > 0 else self.cpu_s

    @property
    def utilisation(self) -> npt.NDArray[np.float64]:
        """By instance, the share of the time that it is busy, with the mapping it has."""
        owners, instances = self.mapping.owner_array, self.mapping.instances
        busy: npt.NDArray[Any] = np.bincount(owners, weights=self.buckets, minlength=instances)
        return busy

    def as_dict(self) -> dict[str, Any]:
        """As status and summary have it."""
        loads, owners = self.buckets, self.mapping.owners
        utilisation: list[float] = self.utilisation.tolist()
        hottest = [b for b in np.argsort(-loads, kind="stable")[:HOTTEST].tolist() if loads[b] > 0]
        return {
            "utilisation": [round(share, 4) for share in utilisation],
            "imbalance": round(imbalance(utilisation), 4),
            "hottest_buckets": [
                {"bucket": b, "instance": owners[b], "utilisation": round(float(loads[b]), 4)}
                for b in hottest
            ],
        }


def imbalance(loads: Sequence[float]) -> float:
    """The largest load over the mean load, minus one; 0 is even."""
    mean = sum(loads) / len(loads) if loads else 0
    return max(loads) / mean - 1 if mean else 0.0
