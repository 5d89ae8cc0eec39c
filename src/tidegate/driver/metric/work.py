"""Measures the work of instances: what each counted, how even it was, how busy they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.driver.metric.fold import MedianFold
from tidegate.driver.metric.metric import (
    CommittedBatch,
    RunMetric,
    Where,
    counted,
    counter,
    outcomes,
    over_instances,
)
from tidegate.driver.metric.text import short_text
from tidegate.elastic.load import imbalance


def _join_line(found: Mapping[str, Any]) -> str:
    compared, candidates = (short_text(found[name]) for name in ("compared", "comparisons"))
    return f"join compared {compared} of {candidates} candidate pairs"


def _merge_line(found: Mapping[str, Any]) -> str:
    return (
        f"merged {found['groups_merged']:,} groups from {found['parts_merged']:,} parts; "
        f"{found['groups_split']:,} were split"
    )


def _subqueries(batch: CommittedBatch) -> tuple[str, ...]:
    pairs = zip(batch.plan.subqueries, batch.work.outcomes, strict=True)
    return tuple(subquery.name for subquery, found in pairs for _ in found)


COMPARISONS = counter(
    "comparisons",
    "candidate pairs",
    counted("comparisons"),
    where=Where.SUMMARY,
    line=_join_line,
    each=True,
)
COMPARED = counter("compared", "pairs compared", counted("compared"), each=True)
OUTPUTS = RunMetric("outputs", over_instances("outputs"), "rows put out", each=True)
CPU = RunMetric("cpu_us", over_instances("cpu_us"), "CPU time", "us", each=True)
GROUPS_MERGED = counter(
    "groups_merged",
    "groups merged",
    counted("groups_merged"),
    where=Where.SUMMARY,
    line=_merge_line,
)
PARTS_MERGED = counter("parts_merged", "parts merged", counted("parts_merged"))
GROUPS_SPLIT = counter("groups_split", "groups split", counted("groups_split"))
SUBQUERIES = RunMetric("subqueries", _subqueries)
"""Of which subquery each instance is."""
INSTANCE_COUNTS = RunMetric(
    "instance_counts", lambda batch: tuple(o.counts for o in outcomes(batch.work))
)
"""What each instance counted, by name; also what map tasks say through it: `map_cpu_us`, and
`taken`, the tuples that they read."""
UTILISATION = RunMetric("utilisation", lambda batch: batch.utilisation, "utilisation", "share")
"""The share of the time that each of them was busy in recent batches."""
IMBALANCE = RunMetric(
    "imbalance",
    lambda batch: max(imbalance([o.tuples for o in found]) for found in batch.work.outcomes),
    "imbalance",
    over=MedianFold,
)
"""How much more tuples the instance with most had than the mean; of the most uneven subquery."""
