"""Batches that exceed memory: cut smaller and tried again, with the same output."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.driver.scene import COUNTS, PASSED, csv, loop_of, memory, opened, plan_of, rows_of
from tidegate.driver.batch_limit import (
    FIRST_ROWS,
    MOST_OUTPUT_ROWS,
    MOST_TRIES,
    STEADY,
    BatchLimit,
)
from tidegate.driver.loop import Loop
from tidegate.driver.options import DEFAULT_BATCH_ROWS, RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.errors import MemoryExceededError, TaskError
from tidegate.execute.job import Job
from tidegate.execute.local import LocalRunner
from tidegate.execute.runner import Draft, Outcomes
from tidegate.execute.within_memory import within_memory
from tidegate.sink.memory import MemorySink
from tidegate.state.inspect import inspect
from tidegate.state.store import Store

ROWS = [(float(i), "abc"[i % 3], i) for i in range(200)]
JOINED = """SELECT l.v AS x, r.v AS y FROM s [RANGE 5 SECONDS] AS l JOIN s [RANGE 5 SECONDS] AS r
    ON l.k = r.k"""


class Small(LocalRunner):
    """Has memory for so many rows of a batch."""

    def __init__(self, rows: int, error: type[BaseException] = MemoryError) -> None:
        self.rows = rows
        self.error = error
        self.tried: list[int] = []

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        rows = max(sum(s.stop - s.new_from for s in d.job.splits) for d in drafts)
        self.tried.append(rows)
        found = super().run_batch(drafts)  # segments are written, and do not count
        if rows > self.rows:
            raise self.error("malloc of size 128 failed")
        return found


def run(loop: Loop, executor: LocalRunner) -> list[tuple[Any, ...]]:
    loop.runner = executor
    loop.run()
    return rows_of(loop.pipeline.outlets._sinks[None])


@pytest.mark.parametrize("sql", [COUNTS, PASSED, JOINED])
@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_the_output_is_the_same(
    sql: str, error: type[BaseException], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of(sql, disorder_s=3)
    plain = loop_of(plan, [memory(*ROWS, end=True)], tmp_path / "plain")
    wanted = run(plain, LocalRunner())
    assert wanted
    executor = Small(30, error)
    with caplog.at_level(logging.WARNING):
        loop = loop_of(plan, [memory(*ROWS, end=True)], tmp_path / "small")
        found = run(loop, executor)
    assert found == wanted
    assert max(executor.tried) > 30
    assert executor.tried[-1] <= 30
    assert caplog.messages[0].startswith("batch 0: ")
    assert (
        "did not fit into memory (the driver: malloc of size 128 failed); it is tried again"
        in caplog.text
    )
    assert "Lower --batch-rows" in caplog.text
    facts = inspect(Store.open(tmp_path / "small"), verify=True)
    assert facts["state"]["counters"]["rows_in"] == len(ROWS)
    assert facts["verified"]["problems"] == []


def test_files_of_a_folder_are_let_go_when_their_batch_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(10):
        csv(folder / f"{number}.csv", *ROWS[20 * number : 20 * (number + 1)])
    plan, found = plan_of(PASSED, disorder_s=2), []
    for place, executor in (("plain", LocalRunner()), ("small", Small(50))):
        loop = loop_of(plan, [opened(str(folder), follow=False)], tmp_path / place)
        found.append(run(loop, executor))
    assert found[0] == found[1]
    assert len(found[0]) == len(ROWS)


@pytest.mark.parametrize("step", ["cut", "stage"])
def test_memory_of_the_driver(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = memory(*ROWS, end=True)
    loop = loop_of(plan_of(PASSED, disorder_s=3), [source], tmp_path, batch_rows=200)
    tried: list[int] = []

    def scarce(action: Any) -> Any:
        def run(*arguments: Any) -> Any:
            result = action(*arguments)
            rows = result.rows if step == "cut" else result.outputs[0].rows.num_rows
            tried.append(rows)
            if rows > 60:
                raise MemoryError
            return result

        return run

    if step == "cut":
        monkeypatch.setattr(loop.pipeline.inputs, "cut", scarce(loop.pipeline.inputs.cut))
    else:
        monkeypatch.setattr(loop.pipeline.outlets, "stage", scarce(loop.pipeline.outlets.stage))
    loop.run()
    sink = loop.pipeline.outlets._sinks[None]
    assert isinstance(sink, MemorySink)
    assert [row[-1] for row in rows_of(sink)] == list(range(200))
    assert tried[0] > 60
    assert max(tried[3:]) <= 60


def test_a_batch_that_never_fits(tmp_path: Path) -> None:
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path)
    executor = loop.runner = Small(-1)
    with pytest.raises(MemoryExceededError) as caught:
        loop.run()
    assert str(caught.value) == (
        "the driver, batch 0 of 1 rows: must fit into memory; got malloc of size 128 failed. Raise "
        "--memory-limit where there is more, lower --batch-rows, ask for more --instances, or "
        "shorten the windows of the query. What is committed stays; run again to continue."
    )
    assert executor.tried == [200, 100, 50, 25, 12, 6, 3, 1]
    assert Store.open(tmp_path).latest() is None
    again = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path)
    again.run()
    assert again.manifest.finished


def test_a_limit_is_halved_and_grows_again() -> None:
    limit = BatchLimit(1000)
    assert limit.shrink(800)
    assert limit.rows == 400
    assert limit.shrink(400)
    assert limit.rows == 200
    for _ in range(STEADY - 1):
        limit.fitted()
    assert limit.rows == 200
    limit.fitted()
    assert limit.rows == 400
    for _ in range(2 * STEADY):
        limit.fitted()
    assert limit.rows == 1000


def test_a_limit_follows_the_rows_that_come_out() -> None:
    limit = BatchLimit(1_000_000, by_output=True, first_rows=8_000)
    assert limit.rows == 8_000
    limit.fitted(8_000, 8_000)
    assert limit.rows == 32_000
    limit.fitted(32_000, 32_000_000)
    assert limit.rows == 32_000 * MOST_OUTPUT_ROWS // 32_000_000 == 8_000
    limit.fitted(8_000, 4_000_000)
    assert limit.rows == 16_000
    limit.fitted(10, 10_000)  # a small batch says little
    assert limit.rows == 16_000
    for _ in range(3):
        limit.fitted(limit.rows, 0)
    assert limit.rows == 1_000_000
    assert limit.shrink(1_000_000)
    limit.fitted(500_000, 500_000)
    assert limit.rows == 500_000


def test_batches_that_the_user_has_sized_are_not_cut_by_their_output() -> None:
    limit = RunOptions(batch_rows=50_000).limit_of(multiplies=True)
    limit.fitted(50_000, 10**10)
    assert limit.rows == 50_000
    assert RunOptions().limit_of(multiplies=True).rows == FIRST_ROWS
    assert RunOptions().limit_of(multiplies=False).rows == DEFAULT_BATCH_ROWS


def test_a_join_of_few_values_has_smaller_batches_unless_they_are_sized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidegate.driver.options.FIRST_ROWS", 20)
    monkeypatch.setattr("tidegate.driver.batch_limit.MOST_OUTPUT_ROWS", 150)
    monkeypatch.setattr("tidegate.driver.books.LEAST_ROWS", 1)
    monkeypatch.setattr("tidegate.driver.books.MANY_ROWS", 3)
    plan, found = plan_of(JOINED.replace("ON l.k = r.k", "ON TRUE")), []
    for place, sized in (("sized", {"batch_rows": 200}), ("free", {"batch_rows": None})):
        loop = loop_of(plan, [memory(*ROWS, end=True)], tmp_path / place, **sized)
        reports: list[BatchReport] = []
        loop._on_batch = reports.append
        found.append(run(loop, LocalRunner()))
        if place == "sized":
            assert len(reports) == 1
            assert "join: batch 0 gave " in caplog.text
            assert caplog.text.count("for each. Expect more as windows fill") == 1
    assert found[0] == found[1]
    assert len(found[0]) > 150 * 5
    assert max(report.rows_out for report in reports) < 300


def test_a_batch_is_not_tried_for_ever() -> None:
    limit = BatchLimit(2**40)
    tries = 0
    while limit.shrink(limit.rows):
        tries += 1
    assert tries == MOST_TRIES
    assert not BatchLimit(10).shrink(1)


def test_how_tasks_tell_of_it() -> None:
    for fail in (lambda: np.empty(2**50), lambda: pa.allocate_buffer(2**60)):
        told = pytest.raises(MemoryExceededError, match=r"^a task: must fit into memory; got ")
        with told, within_memory("a task"):
            fail()


def test_code_of_the_users_that_gets_no_memory() -> None:
    with pytest.raises(MemoryExceededError), within_memory("a task"):
        raise TaskError("sink", "must be fine", "not") from MemoryError()
    with pytest.raises(TaskError), within_memory("a task"):
        raise TaskError("sink", "must be fine", "not") from ValueError()
