"""What windows within an error tell: which share samples answered, and what of their budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.scene import loop_of, memory, plan_of
from tidegate.driver.loop import Loop
from tidegate.driver.report.status import status_of
from tidegate.sink.memory import MemorySink
from tidegate.testing import sampled_means

SQL = "SELECT AVG(v) AS a FROM s [RANGE 20 SECONDS] WITH ERROR {}"
ROWS = [(t / 100, "a", 100 + (0 if t < 2_000 else t * t % 97)) for t in range(4_000)]


@pytest.mark.parametrize(
    ("clause", "budget"), [("2 PERCENT", [2_000, 2_000]), ("2 PERCENT BUDGET 700 ROWS", [700, 700])]
)
def test_a_window_traces_its_budget(clause: str, budget: list[int], tmp_path: Path) -> None:
    """The first window has one value only, of which nothing is learned; the second varies."""
    with sampled_means():
        plan = plan_of(SQL.format(clause))
    loop = loop_of(plan, [memory(*ROWS, end=True)], tmp_path, MemorySink())
    loop.run()
    told = status_of(loop)["newest_windows"]["merge"]
    assert [window["budget_rows"] for window in told] == budget
    same, varying = told
    assert same["windows_from_samples"] == same["rows_from_samples"] == 0
    assert same["tuples_looked_at"] == 1
    assert varying["windows_from_samples"] == varying["rows_from_samples"] == 1
    assert varying["tuples_looked_at"] == varying["sample_rows"] / 2_000
    assert 300 < varying["needed_rows"] <= varying["sample_rows"] <= varying["budget_rows"]


GROUPED = "SELECT k, {} AS m FROM s [RANGE 10 SECONDS] GROUP BY k WITH ERROR 10 PERCENT BY MEAN"


def skewed(partitioner: str, folder: Path) -> Loop:
    """Two windows, each of a large group and 50 small ones; the second has 100 more."""
    rows = [(t / 250, "large" if t % 5 else f"k{t // 5 % 50}", t * t % 97) for t in range(5_000)]
    rows += [(19 + i / 1000, f"m{i}", i) for i in range(100)]
    sql = GROUPED.format("MEDIAN(v)") + f" WITH PARTITIONER {partitioner}"
    source = memory(*sorted(rows), end=True)
    loop = loop_of(plan_of(sql), [source], folder, MemorySink(), instances=3, buckets=4)
    loop.run()
    return loop


@pytest.mark.parametrize(("partitioner", "subquery"), [("hash", "aggregate"), ("shuffle", "merge")])
def test_shares_are_of_rows_and_tuples(partitioner: str, subquery: str, tmp_path: Path) -> None:
    """One row of 51 and of 151 is from a sample, although all windows have one."""
    loop = skewed(partitioner, tmp_path)
    told = status_of(loop)["newest_windows"][subquery]
    assert [window["windows_from_samples"] for window in told] == [1, 1]
    assert [round(1 / window["rows_from_samples"]) for window in told] == [51, 151]
    figures = loop.summary.as_dict()["windows"][subquery]["figures"]
    assert figures["rows_from_samples"]["mean"] == pytest.approx(2 / 202, rel=1e-5)
    looked = sum(window["tuples_looked_at"] * window["sampled_of"] for window in told)
    assert figures["tuples_looked_at"]["mean"] == pytest.approx(looked / 5_100, rel=1e-5)
    text = "windows answered from samples 100%, rows answered from samples 1.0% (at most 2.0%)"
    assert text in loop.summary.text()


def test_sums_and_means_are_exact_and_tell_nothing_of_samples(tmp_path: Path) -> None:
    plan = plan_of(GROUPED.format("AVG(v)"))
    (subquery,) = plan.subqueries
    assert "AVG(`v`): exact, from the state that panes keep anyway" in "\n".join(
        subquery.operator.details({})
    )
    loop = loop_of(plan, [memory(*ROWS, end=True)], tmp_path, MemorySink())
    loop.run()
    assert "samples" not in loop.summary.text()


EXACT = {
    "all": "SELECT {} FROM s [RANGE 10 SECONDS]",
    "sliding groups": "SELECT k, {} FROM s [RANGE 10 SECONDS SLIDE 3 SECONDS] GROUP BY k",
    "some": "SELECT k, {} FROM s [RANGE 10 SECONDS] WHERE v > 110 GROUP BY k HAVING n > 3",
    "of windows": "SELECT SUM(n) AS n, AVG(a) AS a, SUM(t) AS t FROM (SELECT {} FROM s "
    "[RANGE 1 SECOND]) [RANGE 10 SECONDS]",
    "filtered": "SELECT k, COUNT(*) FILTER (WHERE v > 120) AS n, SUM(v) FILTER (WHERE v > 150) "
    "AS t, AVG(v) AS a FROM s [RANGE 10 SECONDS] GROUP BY k",
}


@pytest.mark.parametrize("name", EXACT)
def test_counts_sums_and_means_are_those_of_the_exact_query(name: str, tmp_path: Path) -> None:
    sql = EXACT[name].format("COUNT(*) AS n, SUM(v) AS t, AVG(v) AS a")
    found = []
    for clause in ("", " WITH ERROR 10 PERCENT BUDGET 30 ROWS"):
        sink = MemorySink()
        folder = tmp_path / str(len(found))
        loop_of(plan_of(sql + clause), [memory(*ROWS, end=True)], folder, sink).run()
        found.append(sink.table().to_pylist())
    exact, within = found
    assert len(exact) == len(within) > 0
    for one, other in zip(exact, within, strict=True):
        assert other["exact"]
        for value in ("n", "t", "a"):
            assert {other[value], other[f"{value}_low"], other[f"{value}_high"]} == {one[value]}
