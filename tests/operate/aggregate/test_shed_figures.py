"""What is told of windows that shed: what was kept, the error to expect, how groups drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.driver.scene import loop_of, memory, plan_of, rows_of
from tidegate.approx.concept import GroupConcept
from tidegate.approx.drift import drift_of, drift_parts
from tidegate.driver.report.metrics import Summary
from tidegate.operate.aggregate.shed.figures import share_within
from tidegate.sink.memory import MemorySink

LENGTH = 4_000


def run(sql: str, folder: Path, drifts: bool = False, **options: Any) -> Summary:
    """Two windows of ten seconds; where it drifts, half of the groups of the second are others."""
    chance = np.random.default_rng(3)
    rows = [
        (
            20.0 * i / LENGTH,
            f"k{i % 20 + (10 if drifts and 2 * i >= LENGTH else 0)}",
            int(chance.integers(50, 151)),
        )
        for i in range(LENGTH)
    ]
    loop = loop_of(plan_of(sql), [memory(*rows, end=True)], folder, **options)
    return loop.run()


def means(summary: Summary, subquery: str = "aggregate") -> dict[str, float]:
    figures = summary.as_dict()["windows"][subquery]["figures"]
    return {name: of["mean"] for name, of in figures.items()}


BY_KEY = "SELECT k, AVG(v) AS v, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k "


def test_what_was_kept_and_the_error_that_is_expected(tmp_path: Path) -> None:
    sql = BY_KEY + "WITH SHED 90 PERCENT BY CONCEPT"
    summary = run(sql, tmp_path, batch_rows=700, instances=3)
    found = means(summary)
    assert found["kept"] == pytest.approx(0.1, abs=0.02)
    # Ten of a hundred values that vary by 29 percent: 0.8 * 0.29 / sqrt(10) * sqrt(0.9).
    assert found["error"] == pytest.approx(0.07, abs=0.015)
    assert (found["overlap"], found["distance"]) == (1, 0)
    first, *_ = summary.text().splitlines()
    assert f", {summary.counters['rows_shed']:,} shed" in first
    assert "concept overlap 100%" in summary.text()
    assert 0.8 * LENGTH < summary.counters["rows_shed"] < 0.92 * LENGTH


def test_groups_drift_from_window_to_window(tmp_path: Path) -> None:
    for way, more in (("CONCEPT", {}), ("UNIFORM", {"batch_rows": 900, "instances": 1})):
        sql = f"{BY_KEY} WITH SHED 50 PERCENT BY {way}"
        found = means(run(sql, tmp_path / way, drifts=True, **more))
        assert found["overlap"] == pytest.approx(1 / 3)
        assert found["distance"] == pytest.approx(np.sqrt(0.5), abs=0.01)


def test_uniformly_a_count_is_off_too_and_nothing_is_known_of_what_was_kept(tmp_path: Path) -> None:
    found = means(run(BY_KEY + "WITH SHED 90 PERCENT BY UNIFORM", tmp_path))
    assert "kept" not in found
    # A count of ten: 0.8 * sqrt(0.9 / 10 * (1 + 0.29 ** 2)).
    assert found["error"] == pytest.approx(0.25, abs=0.03)


def test_without_groups_and_where_keys_are_split(tmp_path: Path) -> None:
    scalar = "SELECT AVG(v) AS v FROM s [RANGE 10 SECONDS] WITH SHED 90 PERCENT BY UNIFORM"
    found = means(run(scalar, tmp_path / "scalar"))
    assert found["overlap"] > 0.99
    assert found["error"] < 0.03
    split = run(BY_KEY + "WITH SHED 90 PERCENT WITH PARTITIONER shuffle", tmp_path / "split")
    assert means(split, "merge")["kept"] == pytest.approx(0.1, abs=0.02)


def test_all_tuples_of_small_groups_are_kept_and_exact(tmp_path: Path) -> None:
    sql = "SELECT v, AVG(v) AS m FROM s [RANGE 5 MILLISECONDS] GROUP BY v WITH SHED 90 PERCENT"
    found = means(run(sql, tmp_path))
    assert (found["kept"], found["error"]) == (1, 0)


def test_parts_of_the_drift_add_up() -> None:
    chance = np.random.default_rng(5)
    before, after = (
        GroupConcept.of(chance.permutation(60)[:50].astype(np.uint64), chance.integers(1, 99, 50))
        for _ in range(2)
    )
    whole = before.drift_to(after)
    parts: dict[str, float] = {}
    for odd in (0, 1):
        halves = (
            GroupConcept(c.groups[c.groups % 2 == odd], c.tuples[c.groups % 2 == odd])
            for c in (before, after)
        )
        for name, value in drift_parts(*halves).items():
            parts[name] = parts.get(name, 0.0) + value
    added = drift_of(parts)
    assert added is not None
    assert (added.overlap, added.distance) == pytest.approx((whole.overlap, whole.distance))
    assert drift_of({}) is None


def test_the_share_that_keeps_an_error_does_so(tmp_path: Path) -> None:
    """From mean and variance, however much is shed; the errors of 80 windows are as expected."""
    chance = np.random.default_rng(7)
    values = (1000 * chance.exponential(1.0, (80, 500))).astype(int)
    rows = [(w + i / 500, "k", int(v)) for w, of in enumerate(values) for i, v in enumerate(of)]
    plain, found = "SELECT AVG(v) AS v FROM s [RANGE 1 SECOND] WITH SHED", {}
    for way in ("UP TO 90 PERCENT", "80 PERCENT", "80 PERCENT BY UNIFORM"):
        loop = loop_of(plan_of(f"{plain} {way}"), [memory(*rows, end=True)], tmp_path / way)
        found[way] = means(loop.run())["half_error"]
    # 500 values that vary by 100 percent: 0.8 / sqrt(500).
    assert found == {way: pytest.approx(0.0357, rel=0.05) for way in found}
    assert found["UP TO 90 PERCENT"] == pytest.approx(0.0357, rel=0.02)
    for wanted in (0.02, 0.1):
        share = share_within(wanted, found["UP TO 90 PERCENT"])
        sink, sql = MemorySink(), f"{plain} {100 * share:.3f} PERCENT"
        loop_of(plan_of(sql), [memory(*rows, end=True)], tmp_path / sql, sink).run()
        estimates = np.array([row[2] for row in rows_of(sink)])
        exact = values.mean(axis=1)
        assert np.mean(np.abs(estimates - exact) / exact) == pytest.approx(wanted, rel=0.2)
    assert share_within(0.05, 0.0) == 1.0


def test_groups_have_no_share_that_keeps_an_error(tmp_path: Path) -> None:
    assert "half_error" not in means(run(BY_KEY + "WITH SHED 90 PERCENT", tmp_path))
