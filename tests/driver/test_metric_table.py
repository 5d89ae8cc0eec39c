"""The table of metrics: what it promises to those who iterate over it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.docs.block import ROOT
from tests.driver.batch_report import reported
from tidegate.driver.metric.fold import PeakFold, SumFold
from tidegate.driver.metric.metric import RunMetric, Where, counted, over_instances
from tidegate.driver.metric.registry import COUNTERS, METRICS, lines_at, rows_line, shown_at
from tidegate.driver.report.metrics import Summary


def work(*counts: dict[str, int]) -> Any:
    """A batch of two subqueries, with what their instances counted."""
    made = [SimpleNamespace(counts=one) for one in counts]
    return SimpleNamespace(outcomes=(made[:1], made[1:]))


def test_every_metric_has_a_name_of_its_own() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names)) > 30


def test_each_key_of_the_summary_is_on_the_page() -> None:
    page = (ROOT / "docs/figures.md").read_text(encoding="utf-8")
    _, _, table = page.partition("## The summary")
    keys = Summary().as_dict()
    assert {metric.name for metric in COUNTERS} <= set(keys)
    assert [key for key in keys if f"`{key}`" not in table] == []


def test_instances_fold_as_the_metric_says() -> None:
    batch = SimpleNamespace(work=work({"cpu_us": 5}, {"cpu_us": 7}, {}))
    assert over_instances("cpu_us")(batch) == 12
    assert over_instances("cpu_us", max)(batch) == 7
    assert counted("closed")(batch.work) is None, "no operator of this query counts it"
    assert counted("cpu_us")(batch.work) == 12


def test_batches_fold_as_the_metric_says() -> None:
    peak, total = PeakFold(), SumFold()
    for value in (3, 8, 5):
        peak.add(value)
        total.add(value)
    assert peak.as_dict("held", ()) == {"held": 5, "held_max": 8}
    assert total.as_dict("held", ()) == {"held": 16.0}


def test_a_metric_has_a_line_where_it_says_and_is_not_zero() -> None:
    found = {"rows_in": 1_300, "rows_late": 2, "groups_merged": 4, "parts_merged": 9}
    found |= {"groups_split": 3, "comparisons": 0}
    assert rows_line(found) == "1,300 rows in, 0 out, 2 late, 0 rejected"
    assert rows_line(found | {"rows_shed": 7}) == "1,300 rows in, 0 out, 2 late, 0 rejected, 7 shed"
    assert lines_at(Where.SUMMARY, found) == ["merged 4 groups from 9 parts; 3 were split"]
    assert lines_at(Where.STATUS, found) == []
    assert [m.name for m in shown_at(Where.VIEW, found)] == ["rows_in", "rows_out", "rows_late"]
    size = RunMetric("held", lambda batch: 0, "held", "bytes", PeakFold, where=Where.STATUS)
    assert size.text({"held": 33_588}) == "held 32.8 KiB"


def test_a_metric_that_no_summary_has_is_not_shown_by_one() -> None:
    with pytest.raises(ValueError, match=r"metric held: .* must fold over batches; got neither"):
        RunMetric("held", lambda batch: 0, "held", where=Where.SUMMARY)
    assert RunMetric("held", lambda batch: 0, "held", "us", where=Where.VIEW).number(7) == "7 us"


def test_a_report_has_no_metric_that_the_table_has_not() -> None:
    report = reported(rows_in=3)
    assert report.rows_in == 3
    with pytest.raises(AttributeError, match="no metric has this name: rows_inn"):
        _ = report.rows_inn
