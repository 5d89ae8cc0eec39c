"""What is said of a run: per batch, and in sum."""

from __future__ import annotations

import json
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from tests.driver.batch_report import changed, reported
from tidegate.driver.report.latency import RECENT_BATCHES
from tidegate.driver.report.metrics import (
    KEPT_BYTES,
    KEPT_REPORTS,
    BatchReport,
    Reports,
    Summary,
    size_bytes,
)
from tidegate.spans import Spans
from tidegate.state.manifest import Manifest
from tidegate.testing import ManualClock

REPORT = reported(
    batch=0,
    rows_in=100,
    rows_out=10,
    rows_late=2,
    rows_rejected=1,
    instances=2,
    epoch=0,
    frontier_us=5,
    seconds=0.5,
    spans_ms={"gate": 1.0, "operate": 3.0},
    imbalance=0.25,
    state_rows=7,
    state_bytes=700,
)


def epoch(
    number: int, batch: int, instances: int, switch_ms: float, subquery: str = "aggregate"
) -> dict[str, Any]:
    """An entry of the history of mappings."""
    return {
        "subquery": subquery,
        "epoch": number,
        "batch": batch,
        "instances": instances,
        "switch_ms": switch_ms,
    }


def summary() -> Summary:
    made = Summary(
        counters={"rows_in": 1300, "rows_out": 10, "rows_late": 2, "batches": 13},
        epochs=(epoch(0, 0, 2, 0.1),),
        finished=True,
    )
    for batch in range(3):
        made.add(changed(REPORT, batch=batch, seconds=0.1 * (batch + 1)))
    return made


def test_the_summary_is_json_with_all_that_is_promised() -> None:
    said = json.loads(json.dumps(summary().as_dict()))
    assert set(said) >= {
        *("rows_in", "rows_out", "rows_late", "rows_rejected"),
        *("rows_outside", "rows_shed", "batches"),
        *(
            "rows_per_second",
            "batch_ms",
            "latency_ms",
            "comparisons",
            "epochs",
            "imbalance",
            "state_bytes",
        ),
    }
    assert (said["rows_in"], said["batches"], said["batches_this_run"]) == (1300, 13, 3)
    assert said["rows_per_second"] == 500.0
    assert said["batch_ms"] == {"p50": 200.0, "p95": 290.0, "p99": 298.0, "max": 300.0}
    assert said["spans_ms"] == {"gate": 1.0, "operate": 3.0}
    assert said["imbalance"] == 0.25


def test_the_first_batch_and_recent_ones_are_told_apart() -> None:
    made = Summary()
    assert made.as_dict()["first_batch_ms"] is None
    made.add(changed(REPORT, seconds=9.0))
    assert made.as_dict()["later_batches_ms"] is None
    assert "batch time p50 9000 ms, p95 9000 ms, p99 9000 ms\n" in made.text()
    for _ in range(RECENT_BATCHES):
        made.add(changed(REPORT, seconds=0.1))
    said, even = made.as_dict(), {"p50": 100.0, "p95": 100.0, "p99": 100.0, "max": 100.0}
    assert said["batch_ms"]["max"] == said["first_batch_ms"] == 9000.0
    assert said["later_batches_ms"] == said["recent_batches_ms"] == even
    assert "batch time p50 100 ms, p95 100 ms, p99 100 ms; the first 9.0 s\n" in made.text()


def test_the_state_of_a_run_is_told_at_its_most() -> None:
    made = Summary()
    for count in (3, 8, 5):
        segment = SimpleNamespace(rows=count, bytes=100 * count)
        made.count(Manifest(0, {}, 0, operators={"a/s": (segment,)}))  # type: ignore[dict-item]
    said = made.as_dict()
    assert [said[f"state_{name}"] for name in ("rows", "bytes", "rows_max", "bytes_max")] == [
        *(5, 500),
        *(8, 800),
    ]
    assert "state at most 8 rows, 800 bytes, now 5 rows, 500 bytes; imbalance" in made.text()
    made.count(Manifest(1, {}, 0))
    assert "state at most 8 rows, 800 bytes; imbalance" in made.text()


def test_the_summary_of_a_run_without_a_batch() -> None:
    said = Summary().as_dict()
    assert said["rows_per_second"] == 0.0
    assert said["batch_ms"] == {"p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    assert Summary().text().startswith("stopped: 0 rows in, 0 out")


def test_a_run_without_end_keeps_the_newest_batches_only() -> None:
    made = Summary()
    for batch in range(KEPT_REPORTS + 5):
        made.add(changed(REPORT, batch=batch))
    assert len(made.reports) == KEPT_REPORTS
    assert made.reports[-1].batch == KEPT_REPORTS + 4
    said = made.as_dict()
    assert said["batches_this_run"] == KEPT_REPORTS + 5
    assert said["rows_per_second"] == 200.0


def large(batch: int, instances: int) -> BatchReport:
    """A report as tasks make them: every mapping, key and number is an object of its own."""
    counts = ("comparisons", "compared", "left", "right", "held", "outputs", "cpu_us", "taken")
    return changed(
        REPORT,
        batch=batch,
        frontier_us=10**15 + batch,
        seconds=batch + 0.5,
        spans_ms={f"step {i}": batch + i / 2 for i in range(5)},
        tasks_ms={f"instance task {i}": batch + i / 2 for i in range(12)},
        instance_counts=tuple(
            {f"{name}": 1_000 + batch + i for i, name in enumerate(counts)}
            for _ in range(instances)
        ),
        subqueries=("aggregate",) * instances,
        utilisation=tuple(batch + i / 2 for i in range(instances)),
    )


@pytest.mark.parametrize("instances", [1, 8, 64])
def test_the_size_of_a_report_is_about_what_it_takes(instances: int) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = [large(batch, instances) for batch in range(1_000, 1_100)]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 < sum(map(size_bytes, made)) / taken < 2


def test_reports_of_many_instances_take_no_more_memory() -> None:
    made = Summary()
    for batch in range(1_000):
        made.add(large(batch, 64))
        assert made.reports.bytes <= KEPT_BYTES
    kept = len(made.reports)
    assert 50 < kept < 1_000
    assert [r.batch for r in made.reports] == list(range(1_000 - kept, 1_000))
    assert made.reports.bytes == sum(map(size_bytes, made.reports))
    said = made.as_dict()
    assert said["batches_this_run"] == 1_000
    assert said["batch_ms"]["p50"] == pytest.approx((1_000 - kept / 2) * 1e3, rel=0.01)


def test_the_newest_report_is_kept_whatever_its_size() -> None:
    reports = Reports(most_bytes=10)
    for batch in range(3):
        reports.append(changed(REPORT, batch=batch))
    assert [r.batch for r in reports] == [2]
    assert reports[-1] == reports[0:1][0]


def test_the_text_names_switches_and_what_to_do_about_late_rows() -> None:
    made = summary()
    assert "epoch" not in made.text()
    made.epochs = (*made.epochs, epoch(1, 4, 3, 0.25))
    text = made.text()
    assert text.startswith("finished: 1,300 rows in, 10 out, 2 late, 0 rejected\n")
    assert "epoch 1: 3 instances from batch 4, switched in 0.25 ms" in text.splitlines()
    assert "2 rows came late, 0.2% of all" in text.splitlines()
    made.counters["rows_late"] = 0
    assert "came late" not in made.text()


def test_the_text_names_the_subquery_that_switched_where_there_are_several() -> None:
    made = summary()
    made.epochs = (
        *made.epochs,
        epoch(0, 0, 2, 0.1, "join"),
        epoch(1, 4, 3, 0.25, "join"),
        epoch(1, 5, 1, 0.5),
    )
    assert [line for line in made.text().splitlines() if "epoch" in line] == [
        "join epoch 1: 3 instances from batch 4, switched in 0.25 ms",
        "aggregate epoch 1: 1 instance from batch 5, switched in 0.50 ms",
    ]


def test_instances_are_counted_by_subquery() -> None:
    made = Summary()
    for names in (("aggregate", "join", "join"), ("aggregate", "aggregate", "join")):
        counts = tuple({"cpu_us": 10 ** (i + 1), "outputs": i} for i in range(3))
        made.add(changed(REPORT, subqueries=names, instance_counts=counts))
    zero = {"comparisons": 0, "compared": 0}
    assert made.as_dict()["per_instance"] == [
        {"subquery": "aggregate", "instance": 0, "outputs": 0, "cpu_us": 20, **zero},
        {"subquery": "aggregate", "instance": 1, "outputs": 1, "cpu_us": 100, **zero},
        {"subquery": "join", "instance": 0, "outputs": 3, "cpu_us": 1100, **zero},
        {"subquery": "join", "instance": 1, "outputs": 2, "cpu_us": 1000, **zero},
    ]


def test_spans_are_the_times_between_marks() -> None:
    clock = ManualClock(5.0)
    spans = Spans(clock)
    clock.advance(0.25)
    spans.mark("gate")
    clock.advance(1.0)
    spans.mark("operate")
    assert spans.spans_ms == {"gate": 250.0, "operate": 1000.0}
