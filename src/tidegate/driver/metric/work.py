"""Measures the work of instances: what each counted, how even it was, how busy they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.driver.metric.family import Labels, MetricSample, RunView, gauge, newest, summed
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
from tidegate.state.epoch import counted as counted_text
from tidegate.state.inspect import size_text

if TYPE_CHECKING:
    from tidegate.driver.report.metrics import BatchReport

INSTANCE = ("subquery", "instance_id")
"""The labels of an instance; Prometheus has a label `instance` of its own."""


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


def _instance_cpu(report: BatchReport) -> Iterator[tuple[Labels, float]]:
    """The CPU time of each instance, without what map tasks took."""
    seen: Counter[str] = Counter()
    for subquery, counts in zip(report.subqueries, report.instance_counts, strict=True):
        labels = (INSTANCE[0], subquery), (INSTANCE[1], str(seen[subquery]))
        seen[subquery] += 1
        yield labels, counts.get("cpu_us", 0) / 1e6


def _map_cpu(report: BatchReport) -> Iterator[tuple[Labels, float]]:
    for subquery, counts in zip(report.subqueries, report.instance_counts, strict=True):
        yield ((INSTANCE[0], subquery),), counts.get("map_cpu_us", 0) / 1e6


def _utilisation(view: RunView) -> Iterator[MetricSample]:
    """That of the newest batch, of instances that own buckets."""
    owning = [
        ((INSTANCE[0], view.plan.names[key]), (INSTANCE[1], str(instance)))
        for key, of in view.manifest.mappings.items()
        for instance in range(of["instances"])
    ]
    shares = () if view.report is None else view.report.utilisation
    if len(shares) == len(owning):  # else they are of a mapping before
        for labels, share in zip(owning, shares, strict=True):
            yield MetricSample(labels, share)


def _spill_line(found: Mapping[str, Any]) -> str:
    return f"spilled {counted_text(found['spills'], 'time')}, {size_text(found['spilled_bytes'])}"


_IN_SUMMARY: dict[str, Any] = {"where": Where.SUMMARY}

METRICS = (
    counter(
        "comparisons",
        "candidate pairs",
        counted("comparisons"),
        "Pairs of tuples that joins had to decide on, since the checkpoint began.",
        each=True,
        line=_join_line,
        **_IN_SUMMARY,
    ),
    counter(
        "compared",
        "pairs compared",
        counted("compared"),
        "Pairs of tuples that joins have compared, since the checkpoint began.",
        each=True,
    ),
    RunMetric("outputs", over_instances("outputs"), "rows put out", each=True),
    RunMetric(
        "cpu_us",
        over_instances("cpu_us"),
        "CPU time",
        "us",
        each=True,
        exports=(
            summed(
                "instance_cpu_seconds",
                "CPU time of each instance in this run, without that of map tasks.",
                _instance_cpu,
                INSTANCE,
            ),
            summed(
                "map_cpu_seconds",
                "CPU time of the map tasks of each subquery in this run.",
                _map_cpu,
                INSTANCE[:1],
            ),
        ),
    ),
    counter(
        "groups_merged",
        "groups merged",
        counted("groups_merged"),
        "Groups that were merged from the parts of several instances, since the checkpoint began.",
        line=_merge_line,
        **_IN_SUMMARY,
    ),
    counter("parts_merged", "parts merged", counted("parts_merged")),
    counter("groups_split", "groups split", counted("groups_split")),
    counter(
        "spills",
        "spills",
        counted("spills"),
        "How often an instance had so many result rows that it wrote them to disk first, since the "
        "checkpoint began.",
        absent=0,
        line=_spill_line,
        **_IN_SUMMARY,
    ),
    counter(
        "spilled_bytes",
        "bytes spilled",
        counted("spilled_bytes"),
        "Bytes of result rows that instances wrote to disk first, since the checkpoint began.",
        absent=0,
    ),
    RunMetric("subqueries", _subqueries),
    RunMetric("instance_counts", _counts),
    # The share of the time that each instance was busy in recent batches.
    RunMetric(
        "utilisation",
        lambda batch: batch.utilisation,
        "utilisation",
        "share",
        exports=(
            gauge(
                "instance_utilisation_ratio",
                "Share of the time that each instance was busy in recent batches.",
                _utilisation,
                INSTANCE,
            ),
        ),
    ),
    RunMetric(
        "imbalance",
        _imbalance,
        "imbalance",
        over=MedianFold,
        exports=(
            newest(
                "imbalance_ratio",
                "Tuples of the fullest instance over the mean, minus 1, in the most uneven "
                "subquery of the newest batch.",
                lambda report: report.imbalance,
            ),
        ),
    ),
)
