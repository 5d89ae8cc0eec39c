"""Folds the values of a metric over the batches of a run, for the summary.

A fold sees every batch once. When it is asked, it gets the reports that are still kept, the newest.
So sums and peaks cover the run, medians and percentiles only those reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.driver.report.latency import RECENT_BATCHES

if TYPE_CHECKING:
    from tidegate.driver.report.metrics import BatchReport
    from tidegate.gate.backlog import Backlog

Reported = Sequence["BatchReport"]


class Fold(ABC):
    """One metric over the batches of one run; made when the run begins."""

    def add(self, value: Any) -> None:  # noqa: B027
        """Add the value of a batch; does nothing if the fold only needs the kept reports."""

    @abstractmethod
    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        """The metric's part of the JSON; `name` is its name. Called by any thread."""


class MedianFold(Fold):
    """The median over the kept reports."""

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        values = [getattr(report, name) for report in kept]
        return {name: round(float(np.median(values)), 4) if values else 0.0}


class StepFold(Fold):
    """The median of each step's time over the kept reports."""

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        values = [getattr(report, name) for report in kept]
        steps = sorted({step for of in values for step in of})
        if not steps:
            return {name: {}}
        medians = np.median([[of.get(step, 0.0) for step in steps] for of in values], axis=0)
        return {name: {step: round(float(m), 3) for step, m in zip(steps, medians, strict=True)}}


class SumFold(Fold):
    """The sum over the run; in JSON under the metric's name or another one."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.total = 0.0

    def add(self, value: float) -> None:
        self.total += value

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        return {self.key or name: round(self.total, 6)}


class TimeFold(SumFold):
    """The times of batches: their sum, the first one, and percentiles with and without it.

    The first is separate because it often pays for loading and compiling.
    """

    first_s: float | None = None
    batches = 0

    def add(self, value: float) -> None:
        super().add(value)
        self.batches += 1
        if self.first_s is None:
            self.first_s = value

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        kept_ms = [getattr(report, name) * 1e3 for report in kept]
        later_ms = kept_ms[1:] if self.batches == len(kept_ms) else kept_ms
        return {
            **super().as_dict(name, kept),
            "batch_ms": percentiles(kept_ms),
            "first_batch_ms": None if self.first_s is None else round(self.first_s * 1e3, 3),
            "later_batches_ms": percentiles(later_ms) if later_ms else None,
            "recent_batches_ms": percentiles(kept_ms[-RECENT_BATCHES:]),
        }


class PeakFold(Fold):
    """The newest value, and the largest that there was when the run began or after any batch."""

    def __init__(self) -> None:
        self.newest = self.most = 0

    def add(self, value: int) -> None:
        self.newest, self.most = value, max(self.most, value)

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        return {name: self.newest, f"{name}_max": self.most}


class BacklogFold(Fold):
    """The newest backlog, and by unit the most that there was; None where no source is live."""

    def __init__(self) -> None:
        self._newest: Backlog | None = None
        self._most: dict[str, int] = {}

    def add(self, value: Backlog | None) -> None:
        self._newest = value
        for unit, count in ({} if value is None else value.total).items():
            self._most[unit] = max(self._most.get(unit, 0), count)

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        newest = self._newest
        if newest is None:
            return {name: None, f"{name}_max": None}
        found = {**newest.total, "sources": {**newest.sources}}
        return {name: found, f"{name}_max": dict(self._most)}


def per_instance(kept: Reported, names: Sequence[str]) -> list[dict[str, Any]]:
    """The sums of what each instance counted under these names, over the reports that are kept."""
    counted: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for report in kept:
        seen: Counter[str] = Counter()
        for subquery, counts in zip(report.subqueries, report.instance_counts, strict=True):
            counted.setdefault((subquery, seen[subquery]), []).append(counts)
            seen[subquery] += 1
    return [
        {
            "subquery": subquery,
            "instance": number,
            **{
                name: sum([counts.get(name, 0) for counts in counted[subquery, number]])
                for name in names
            },
        }
        for subquery, number in sorted(counted)
    ]


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """As JSON has them; 0 where there is no value."""
    shares = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    found = np.percentile(values or [0.0], list(shares.values()))
    return {name: round(float(one), 3) for name, one in zip(shares, found, strict=True)}
