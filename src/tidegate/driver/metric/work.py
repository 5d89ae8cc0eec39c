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
    """Of which subquery each instance is."""
    pairs = zip(batch.plan.subqueries, batch.work.outcomes, strict=True)
    return tuple(subquery.name for subquery, found in pairs for _ in found)


def _counts(batch: CommittedBatch) -> tuple[Mapping[str, int], ...]:
    """What each instance counted; also what map tasks count through it, as `map_cpu_us`."""
    return tuple(outcome.counts for outcome in outcomes(batch.work))


def _imbalance(batch: CommittedBatch) -> float:
    """How many more tuples the fullest instance had than the mean, in the most uneven subquery."""
    return max(imbalance([o.tuples for o in found]) for found in batch.work.outcomes)


_IN_SUMMARY = {"where": Where.SUMMARY}

METRICS = (
    counter(
        "comparisons",
        "candidate pairs",
        counted("comparisons"),
        each=True,
        line=_join_line,
        **_IN_SUMMARY,
    ),
    counter("compared", "pairs compared", counted("compared"), each=True),
    RunMetric("outputs", over_instances("outputs"), "rows put out", each=True),
    RunMetric("cpu_us", over_instances("cpu_us"), "CPU time", "us", each=True),
    counter(
        "groups_merged", "groups merged", counted("groups_merged"), line=_merge_line, **_IN_SUMMARY
    ),
    counter("parts_merged", "parts merged", counted("parts_merged")),
    counter("groups_split", "groups split", counted("groups_split")),
    RunMetric("subqueries", _subqueries),
    RunMetric("instance_counts", _counts),
    # The share of the time that each instance was busy in recent batches.
    RunMetric("utilisation", lambda batch: batch.utilisation, "utilisation", "share"),
    RunMetric("imbalance", _imbalance, "imbalance", over=MedianFold),
)
