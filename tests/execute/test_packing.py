"""Jobs for workers that stay: the plan travels once, and its parts are the same objects then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from tests.driver.scene import loop_of, memory, plan_of, rows_of
from tests.execute.test_shared_task import QUERY, ROWS
from tidegate.errors import RunError
from tidegate.execute import plan_part, work
from tidegate.execute.job import Job
from tidegate.execute.spark.packing import Packing
from tidegate.execute.spark.task_exchange import StayingExchange
from tidegate.execute.task_runner import StayingTasks, Task
from tidegate.execute.work import SentWork, TaskWork, keep_sent, key_of
from tidegate.sink.memory import MemorySink


class Here(StayingTasks):
    """Runs the tasks of workers that stay in this process, which keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}
        self.jobs: list[Job] = []
        self.sizes: list[int] = []

    def groups(self, instances: int) -> int:
        return min(instances, 2)

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        key = key_of(data)
        self.sent[key] = data
        if name == "job":
            self.sizes.append(len(data))
        return SentWork(key)

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        for key, data in self.sent.items():
            keep_sent(key, data)
        self.jobs.append(job)
        return [task(work, number) for number in range(count)]

    def start(self) -> bool:
        return True

    def abort(self) -> None:
        """Nothing runs on."""

    def close(self) -> None:
        """Nothing is held."""


def test_rows_are_the_same_and_jobs_are_short(tmp_path: Path) -> None:
    found, runner = [], Here()
    for folder, executor in (("local", None), ("packed", StayingExchange(runner))):
        sink = MemorySink()
        source = memory(*ROWS, end=True)
        loop = loop_of(plan_of(QUERY), [source], tmp_path / folder, sink, batch_rows=50)
        if executor is not None:
            loop.runner.start = executor.start  # type: ignore[method-assign]
            loop.runner.run_batch = executor.run_batch  # type: ignore[method-assign]
        loop.run()
        found.append(rows_of(sink))
    assert found[0] == found[1]
    assert len(runner.jobs) >= 8
    whole = [len(cloudpickle.dumps(job)) for job in runner.jobs]
    assert all(full - size > 500 for size, full in zip(runner.sizes, whole, strict=True))


def test_parts_of_the_plan_are_one_object_in_all_jobs(tmp_path: Path) -> None:
    loop = loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], tmp_path, batch_rows=50)
    drafts = []
    run_batch = loop.runner.run_batch

    def noted(these: Any) -> Any:
        drafts.append(these)
        return run_batch(these)

    loop.runner.run_batch = noted  # type: ignore[method-assign]
    loop.run()
    runner = Here()
    packing = Packing(runner)
    jobs = []
    for these in drafts[:2]:
        packing.know(these)
        left = packing.leave(these[0].job, "job", these[0].job)
        for key, data in runner.sent.items():
            keep_sent(key, data)
        jobs.append(plan_part.load(left.open()))
    one, two = (job.subquery for job in jobs)
    assert one.operator is two.operator
    assert one.prefixes is two.prefixes
    assert one.ports is two.ports
    assert one.operator is not drafts[0][0].job.subquery.operator
    assert jobs[0] == drafts[0][0].job
    assert jobs[1].batch == jobs[0].batch + 1


def test_a_part_that_was_never_sent_is_told(tmp_path: Path) -> None:
    loop = loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], tmp_path)
    runner = Here()
    packing = Packing(runner)

    def pack(drafts: Any) -> Any:
        packing.know(drafts)
        left = packing.leave(drafts[0].job, "job", drafts[0].job)
        plan_part._loaded.clear()
        work._sent.clear()
        keep_sent(left.key, runner.sent[left.key])  # type: ignore[attr-defined]
        return plan_part.load(left.open())

    loop.runner.run_batch = pack  # type: ignore[method-assign]
    with pytest.raises(RunError, match="must have been sent to this worker"):
        loop.run()
