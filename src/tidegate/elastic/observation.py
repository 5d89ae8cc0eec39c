"""What one batch showed of a subquery's load, between the loop that measures and policies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.route.mapping import Mapping


@dataclass(frozen=True)
class InstanceLoad:
    """What one instance did in a batch; `cpu_s` has its even part of what map tasks did."""

    cpu_s: float
    tuples: int
    comparisons: int = 0
    outputs: int = 0


@dataclass(frozen=True)
class Observation:
    """One batch of one subquery.

    `seconds` is what the batch took, and `period_s` the time from the end of the batch before it to
    its own end: its `seconds` where there was input all the time, and what the query waited for
    input before it. The first batch of a run has waited for nothing. `buckets` has the CPU seconds
    of each bucket, as the instances measured or estimated them; those of an instance's buckets add
    up to its own. `backlog` are the tuples that had arrived and were not taken, None where no
    source is live or their number is not known. `slots` is how many instances can run at once where
    the query runs, None where that is not known.
    """

    subquery: str
    batch: int
    seconds: float
    period_s: float
    mapping: Mapping
    instances: tuple[InstanceLoad, ...]
    buckets: npt.NDArray[np.float64]
    backlog: int | None = None
    slots: int | None = None

    @property
    def utilisation(self) -> npt.NDArray[np.float64]:
        """The share of the period that each instance was busy; above 1 it falls behind."""
        busy = np.array([load.cpu_s for load in self.instances], np.float64)
        return busy / self.period_s if self.period_s > 0 else busy * np.inf
