"""Counts the jobs of a run on several hosts by how their tuples came from task to task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tidegate.driver.metric.family import summed
from tidegate.driver.metric.fold import Fold, Reported
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, Where, outcomes


class TallyFold(Fold):
    """How often each word came up in the batches of a run."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def add(self, value: Mapping[str, int]) -> None:
        self._times.update(value)

    def as_dict(self, name: str, kept: Reported) -> dict[str, Any]:
        return {name: dict(sorted(self._times.items()))}


def _exchanges(batch: CommittedBatch) -> Counter[str]:
    return Counter(o.exchange for o in outcomes(batch.work) if o.exchange is not None)


def _line(found: Mapping[str, Any]) -> str:
    jobs = found["exchanges"]
    return "exchange " + ", ".join(f"{way} {count:,}" for way, count in jobs.items())


METRICS = (
    RunMetric(
        "exchanges",
        _exchanges,
        over=TallyFold,
        where=Where.SUMMARY | Where.STATUS,
        line=_line,
        exports=(
            summed(
                "exchange_jobs",
                "Jobs on several hosts in this run, by how their tuples came from task to task.",
                lambda report: [((("exchange", w),), n) for w, n in report.exchanges.items()],
                ["exchange"],
            ),
        ),
    ),
)
