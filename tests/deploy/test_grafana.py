"""The dashboard shows what is exported: no name that is not there, none forgotten."""

from __future__ import annotations

import re
from itertools import combinations

from tests.deploy.grafana import dashboard, expressions, panels
from tidegate.driver.metric.family import HISTOGRAM
from tidegate.driver.metric.registry import FAMILIES

LEFT_OUT = {
    "tidegate_batches_total": "Batch time says more",
    "tidegate_exchange_jobs_total": "it is chosen once in a run",
    "tidegate_groups_dropped_total": "of BY CONCEPT TOTAL alone",
    "tidegate_rows_outside_total": "of backfills alone, and no trouble",
    "tidegate_source_newest_event_timestamp_seconds": "for alerts on live sources: time() minus it",
    "tidegate_start_seconds": "once in a run",
    "tidegate_tuples_dropped_total": "of BY CONCEPT TOTAL alone, and rows that are shed",
    "tidegate_watermark_timestamp_seconds": "for alerts on live sources: time() minus it",
}
"""What no panel shows, and why."""


def served() -> dict[str, str]:
    """The names of series, each with that of its family."""
    found = {}
    for family in FAMILIES:
        ends = ("_bucket", "_sum", "_count") if family.kind == HISTOGRAM else ("",)
        found |= {f"{family.series_name}{end}": family.series_name for end in ends}
    return found


def test_every_metric_is_on_a_panel_or_left_out_for_a_reason() -> None:
    names = {name for e in expressions() for name in re.findall(r"\btidegate_\w+", e)}
    assert names - set(served()) == set()
    shown = {served()[name] for name in names}
    assert shown.isdisjoint(LEFT_OUT)
    assert shown | set(LEFT_OUT) == set(served().values())


def test_legends_name_labels_that_the_metrics_have() -> None:
    labels = {family.series_name: {"query", *family.labels} for family in FAMILIES}
    checked = 0
    for panel in panels():
        for target in panel["targets"]:
            names = re.findall(r"\btidegate_\w+", target["expr"])
            known = set.union(*(labels[served()[name]] for name in names))
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= known, target
            checked += 1
    assert checked > 40


def test_panels_say_what_they_are_and_lie_beside_each_other() -> None:
    assert all(panel["title"] and panel["description"].endswith(".") for panel in panels())
    every = dashboard()["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    for one, other in combinations([panel["gridPos"] for panel in every], 2):
        apart = (one["x"] + one["w"] <= other["x"], other["x"] + other["w"] <= one["x"])
        above = (one["y"] + one["h"] <= other["y"], other["y"] + other["h"] <= one["y"])
        assert any(apart + above), (one, other)
