"""Batches that are cut and mapped while the one before runs: the same rows, and what ends it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import COUNTS, Row, drain, loop_of, memory, plan_of, rows_of
from tidegate import schedule
from tidegate.driver.batch_limit import BatchLimit
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.elastic.request import Request, Scale
from tidegate.execute.exchange import FOLDER, Shipment, begin, leave
from tidegate.execute.job import Job, Outcome
from tidegate.execute.map_ahead import MapsAhead
from tidegate.execute.runner import Draft, JobRunner
from tidegate.execute.shared_task import instance_task, instance_work, map_task
from tidegate.sink.memory import MemorySink

ROWS: list[Row] = [(n / 4, "abc"[n % 3], n) for n in range(120)]
BATCH_ROWS = 10


class AheadTasks(JobRunner):
    """Runs jobs by map tasks and instances, and the map tasks of the next batch beside them."""

    def __init__(self, ahead: bool = True) -> None:
        self.ahead = MapsAhead(self._begin)
        self._is_asked = ahead
        self.fails_ahead = False
        self.too_large: int | None = None
        """The batch whose instances find too little memory, once."""

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        return self._is_asked

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        self.ahead.begin(jobs)

    def _begin(self, job: Job) -> list[Future[Shipment]]:
        begin(job)
        left = leave(job, "job", pickle.dumps(job))

        def mapped(number: int) -> Shipment:
            if self.fails_ahead:
                raise RuntimeError("its worker died")
            return map_task(left, number)

        start = schedule.current().start
        return [start("map", lambda n=n: mapped(n)) for n in range(len(job.splits))]

    def run(self, job: Job) -> list[Outcome]:
        shipments = self.ahead.take(job)
        if shipments is None:
            begin(job)
        left = leave(job, "job", pickle.dumps(job))
        if shipments is None:
            shipments = [map_task(left, n) for n in range(len(job.splits))]
        if self.too_large == job.batch:
            self.too_large = None
            raise MemoryError
        work = leave(job, "shipments", instance_work(left, shipments))
        return [instance_task(work, i) for i in range(job.mapping.running)]

    def release(self, jobs: Sequence[Job]) -> None:
        self.ahead.drop(jobs[0].batch)
        self.ahead.clear(jobs[0])


def loop_over(
    rows: Sequence[Row], place: Path, sink: MemorySink, runner: JobRunner, **options: Any
) -> Loop:
    given = {"batch_rows": BATCH_ROWS, **options}
    loop = loop_of(plan_of(COUNTS), [memory(*rows, end=True)], place, sink, **given)
    loop.runner = runner
    return loop


@pytest.fixture
def expected(tmp_path: Path) -> list[tuple[Any, ...]]:
    sink = MemorySink()
    loop_over(ROWS, tmp_path / "plain", sink, AheadTasks(ahead=False)).run()
    return rows_of(sink)


def test_all_batches_after_the_first_are_mapped_ahead(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    loop = loop_over(ROWS, tmp_path / "ahead", sink, runner)
    summary = loop.run()
    assert rows_of(sink) == expected
    assert (runner.ahead.used, runner.ahead.unused) == (len(summary.reports) - 1, 0)
    assert not (tmp_path / "ahead" / FOLDER).exists()


def test_every_manifest_says_what_its_own_batch_has_read(tmp_path: Path) -> None:
    found = []
    for ahead in (False, True):
        place = tmp_path / str(ahead)
        loop = loop_over(ROWS, place, MemorySink(), AheadTasks(ahead))
        told = []
        while loop.step() is not None:
            told.append((loop.manifest.sources, loop.manifest.frontier_us, loop.manifest.finished))
        loop.close()
        found.append(told)
    assert len(found[0]) == 12
    assert found[0] == found[1]


def test_a_switch_throws_away_what_was_mapped_for_other_owners(
    tmp_path: Path, expected: Any
) -> None:
    sink, runner = MemorySink(), AheadTasks()
    loop = loop_over(ROWS, tmp_path / "switch", sink, runner)
    for _ in range(3):
        loop.step()
    loop.controls.ask(Request(Scale(4), by="test"))
    drain(loop)
    loop.close()
    assert rows_of(sink) == expected
    assert runner.ahead.unused == 1
    assert loop.manifest.instances == 4


def test_a_batch_that_does_not_fit_takes_the_next_one_back(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    runner.too_large = 4
    loop = loop_over(ROWS, tmp_path / "memory", sink, runner)
    summary = loop.run()
    assert rows_of(sink) == expected
    assert {report.rows_in for report in summary.reports} == {BATCH_ROWS, BATCH_ROWS // 2}
    assert runner.ahead.unused >= 1


def test_a_limit_that_changes_has_the_next_batch_cut_again(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    loop = loop_over(ROWS, tmp_path / "limit", sink, runner)
    first = loop.step()
    loop.pipeline.limit.ask(7)
    second = loop.step()
    assert first is not None
    assert second is not None
    assert (first.rows_in, second.rows_in) == (10, 7)
    drain(loop)
    loop.close()
    assert rows_of(sink) == expected


def test_a_batch_is_not_cut_ahead_where_the_output_says_how_large_it_is(tmp_path: Path) -> None:
    runner = AheadTasks()
    loop = loop_over(ROWS, tmp_path, MemorySink(), runner)
    loop.pipeline.limit = BatchLimit(40, by_output=True, first_rows=5)
    summary = loop.run()
    assert [report.rows_in for report in summary.reports] == [5, 20, 40, 40, 15]
    assert (runner.ahead.used, runner.ahead.unused) == (2, 0)


def test_a_source_that_joins_is_in_the_batch_that_was_cut_without_it(tmp_path: Path) -> None:
    later: list[Row] = [(n / 4, "d", n) for n in range(10, 60)]
    found = []
    for ahead in (False, True):
        sink, runner = MemorySink(), AheadTasks(ahead)
        loop = loop_over(ROWS, tmp_path / str(ahead), sink, runner)
        loop.step()
        source = memory(*later, id="later", end=True)
        loop.controls.announce(Connection(0, source))
        drain(loop)
        loop.close()
        found.append((rows_of(sink), loop.manifest.counters))
        assert runner.ahead.unused == int(ahead)
    assert found[0] == found[1]
    assert sum(row[4] for row in found[0][0] if row[2] == "d") == len(later)


def test_map_tasks_that_fail_ahead_run_again_in_their_turn(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    runner.fails_ahead = True
    loop_over(ROWS, tmp_path / "failing", sink, runner).run()
    assert rows_of(sink) == expected
    assert runner.ahead.used == 0


def test_a_run_with_a_trigger_cuts_each_batch_when_it_is_due(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    loop_over(ROWS, tmp_path / "timed", sink, runner, trigger_s=0.001).run()
    assert rows_of(sink) == expected
    assert (runner.ahead.used, runner.ahead.unused) == (0, 0)


def test_batches_with_room_for_more_are_not_cut_ahead(tmp_path: Path) -> None:
    source, runner = memory(*ROWS[:5]), AheadTasks()
    loop = loop_of(plan_of(COUNTS), [source], tmp_path, batch_rows=BATCH_ROWS)
    loop.runner = runner
    assert drain(loop) == 1
    loop.close()
    assert (runner.ahead.used, runner.ahead.unused) == (0, 0)


def test_a_stop_leaves_nothing_of_the_batch_that_was_begun(tmp_path: Path, expected: Any) -> None:
    sink, runner = MemorySink(), AheadTasks()
    loop = loop_over(ROWS, tmp_path / "stopped", sink, runner)
    loop.step()
    loop.close()
    assert not (tmp_path / "stopped" / FOLDER).exists()
    again = loop_over(ROWS, tmp_path / "stopped", sink, AheadTasks())
    again.run()
    assert rows_of(sink) == expected
