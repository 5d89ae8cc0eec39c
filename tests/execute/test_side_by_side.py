"""Subqueries of a batch that take no rows of each other run at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.driver.scene import Row, loop_of, memory, plan_of, rows_of
from tidegate.errors import TaskError
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner, run_here
from tidegate.execute.runner import Draft, Outcomes, side_by_side
from tidegate.sink.memory import MemorySink

QUERY = """
SELECT l.k, l.n, r.most FROM
(SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k) [RANGE 4 SECONDS] AS l JOIN
(SELECT k, MAX(v) AS most FROM s [RANGE 4 SECONDS] GROUP BY k) [RANGE 4 SECONDS] AS r
ON l.k = r.k
"""
ROWS: list[Row] = [(n / 10, "abc"[n % 3], n) for n in range(200)]


class Beside(LocalRunner):
    """Lets the first two jobs of a batch go on only when both have begun."""

    def __init__(self, fails: Sequence[str] = ()) -> None:
        self._both = Barrier(2, timeout=120)
        self._fails = fails
        self.ran: list[str] = []

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return side_by_side(drafts, self.run)

    def run(self, job: Job) -> list[Outcome]:
        if job.operator.kind == "aggregate":
            self._both.wait()
        self.ran.append(job.operator.kind)
        if job.subquery.name in self._fails:
            raise TaskError(job.subquery.name, "must fail", "this")
        return run_here(job)


def joined(place: Path, runner: LocalRunner) -> list[tuple[Any, ...]]:
    sink = MemorySink()
    loop = loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], place, sink, batch_rows=50)
    loop.runner = runner
    loop.run()
    return rows_of(sink)


def test_two_aggregates_run_at_the_same_time_and_their_join_after_them(tmp_path: Path) -> None:
    runner = Beside()
    found = joined(tmp_path / "beside", runner)
    assert len(found) > 10
    assert found == joined(tmp_path / "turn", LocalRunner())
    assert runner.ran == ["aggregate", "aggregate", "join"] * (len(runner.ran) // 3)


def test_the_first_error_is_told_when_all_have_ended(tmp_path: Path) -> None:
    names = [s.name for s in plan_of(QUERY).subqueries if s.operator.kind == "aggregate"]
    for fails in ([names[1]], names):
        runner = Beside(fails)
        with pytest.raises(TaskError, match=f"^{fails[0]}: must fail"):
            joined(tmp_path / str(len(fails)), runner)
        assert runner.ran == ["aggregate", "aggregate"]
