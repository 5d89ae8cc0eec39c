"""What windows within an error tell of their budget: what they need, look at, and have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.scene import loop_of, memory, plan_of
from tidegate.driver.status import status_of
from tidegate.sink.memory import MemorySink

SQL = "SELECT AVG(v) AS a FROM s [RANGE 20 SECONDS] WITH ERROR {}"
ROWS = [(t / 100, "a", 100 + (0 if t < 2_000 else t * t % 97)) for t in range(4_000)]


@pytest.mark.parametrize(
    ("clause", "budget"), [("2 PERCENT", [2_000, 2_000]), ("2 PERCENT BUDGET 700 ROWS", [700, 700])]
)
def test_a_window_traces_its_budget(clause: str, budget: list[int], tmp_path: Path) -> None:
    """The first window has one value only, of which nothing is learned; the second varies."""
    loop = loop_of(plan_of(SQL.format(clause)), [memory(*ROWS, end=True)], tmp_path, MemorySink())
    loop.run()
    told = status_of(loop)["newest_windows"]["merge"]
    assert [window["budget_rows"] for window in told] == budget
    same, varying = told
    assert same["approximate"] == 0
    assert varying["approximate"] == 1
    assert 300 < varying["needed_rows"] <= varying["sample_rows"] <= varying["budget_rows"]
