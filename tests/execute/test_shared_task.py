"""The tasks of the shared exchange called in this process: their rows, and what they count."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.driver.scene import loop_of, memory, plan_of, rows_of
from tidegate.driver.report.metrics import BatchReport
from tidegate.errors import TaskError
from tidegate.execute.exchange import FOLDER, begin, clear, leave
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import Draft, JobRunner, Outcomes
from tidegate.execute.shared_task import (
    batch_task,
    instance_task,
    instance_work,
    map_task,
    whole_task,
    whole_work,
)
from tidegate.sink.memory import MemorySink

QUERY = """
SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k)
[RANGE 4 SECONDS]
"""
ROWS = [(second / 10, "abc"[second % 3], second) for second in range(200)]
INSTANCES = 3


class SharedTasks(JobRunner):
    """Runs the tasks of a job as the executor on Spark does, one after the other."""

    def __init__(self, groups: int | None = None) -> None:
        self._groups = groups

    def run(self, job: Job) -> list[Outcome]:
        begin(job)
        left = leave(job, "job", pickle.dumps(job))
        if self._groups is not None:
            work = leave(job, "groups", whole_work(left, self._groups))
            return [o for i in range(self._groups) for o in whole_task(work, i)]
        shipments = [map_task(left, n) for n in range(len(job.splits))]
        assert all(set(s.spans_ms) == {"map load", "map ship"} for s in shipments)
        work = leave(job, "shipments", instance_work(left, shipments))
        return [instance_task(work, i) for i in range(job.mapping.instances)]

    def release(self, jobs: Sequence[Job]) -> None:
        clear(jobs[0])

    def close(self) -> None:
        """Nothing is held open."""


class OneTask(SharedTasks):
    """Runs a whole batch as the executor on Spark does where it is tiny."""

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        begin(drafts[0].job)
        outcomes, seconds = batch_task(
            leave(drafts[0].job, "batch", pickle.dumps(tuple(drafts))), 0
        )
        assert seconds > 0
        first, last = outcomes
        assert sum(p.count for o in first for p in o.pieces) == 0, "nobody takes them any more"
        assert sum(p.count for o in last for p in o.pieces) > 0
        return [d.job for d in drafts], outcomes


def run(folder: Path, executor: SharedTasks | None) -> tuple[list[tuple], BatchReport]:
    sink = MemorySink()
    loop = loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], folder, sink, instances=INSTANCES)
    if executor is not None:
        loop.runner = executor
    (report,) = loop.run().reports
    return rows_of(sink), report


@pytest.mark.parametrize(
    "executor",
    [SharedTasks(3), SharedTasks(2), SharedTasks(1), SharedTasks(), OneTask()],
    ids=["whole", "two groups", "one group", "map and instance", "one task"],
)
def test_rows_and_counts(tmp_path: Path, executor: SharedTasks) -> None:
    """Every tuple is counted as taken once, also where every instance reads all of them."""
    expected, _ = run(tmp_path / "local", None)
    rows, report = run(tmp_path / "shared", executor)
    assert rows == expected
    assert len(rows) == 5
    taken = [c["taken"] for c in report.instance_counts]
    assert report.subqueries == ("aggregate",) * INSTANCES + ("aggregate2",) * INSTANCES
    assert sum(taken[:INSTANCES]) == len(ROWS)
    assert sum(taken[INSTANCES:]) == 30, "three keys in ten windows"


class Failing(SharedTasks):
    """Tasks of which one fails when others have left their parcels."""

    def run(self, job: Job) -> list[Outcome]:
        super().run(job)
        assert Path(job.store.location, FOLDER).is_dir()
        raise TaskError("a task", "must do its work", "odd moon")


def test_a_batch_that_fails_leaves_nothing_for_tasks(tmp_path: Path) -> None:
    with pytest.raises(TaskError):
        run(tmp_path, Failing())
    assert not (tmp_path / FOLDER).exists()


def test_what_a_run_left_that_never_counted_goes_at_the_next_start(tmp_path: Path) -> None:
    """Whatever number it had: the lock says that it is over."""
    left = tmp_path / FOLDER / "7" / "00000000-aggregate"
    run(tmp_path, SharedTasks(3))
    left.mkdir(parents=True)
    (left / "job").write_bytes(b"code")
    loop_of(plan_of(QUERY), [memory(*ROWS, end=True)], tmp_path, instances=INSTANCES).run()
    assert not (tmp_path / FOLDER).exists()


def test_what_tasks_spend_their_time_on(tmp_path: Path) -> None:
    _, report = run(tmp_path, SharedTasks())
    spent = {"map read", "map take", "map evaluate", "map fold", "map route"}
    spent |= {"instance load", "instance report", "instance ship"}
    assert spent <= set(report.tasks_ms)


def test_instances_that_read_a_small_batch_each_say_what_that_took(tmp_path: Path) -> None:
    _, small = run(tmp_path / "small", SharedTasks(3))
    _, large = run(tmp_path / "large", SharedTasks())
    assert all("map_cpu_us" in c for c in small.instance_counts)
    assert all(c["map_cpu_us"] > 0 for c in small.instance_counts[:INSTANCES])
    assert [c["map_cpu_us"] for c in large.instance_counts[1:INSTANCES]] == [0, 0]
