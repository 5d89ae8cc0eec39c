"""The loop batch by batch: what a batch does, where a restart goes on, and odd inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import (
    COUNTS,
    PASSED,
    SCHEMA,
    Row,
    csv,
    drain,
    loop_of,
    memory,
    opened,
    plan_of,
    rows_of,
    run_dry,
    table,
)
from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.metric.metric import BETWEEN, BOOKS
from tidegate.elastic.request import Request, Scale
from tidegate.errors import CheckpointError, OptionError, RunError, SinkError, SourceError
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.plan.physical import QUERY_CLOUD
from tidegate.sink.call import CallSink
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.state.store import Store
from tidegate.testing import STEPS, ManualClock

ROWS: list[Row] = [(1, "a", 1), (4, "b", 2), (11, "a", 3), (15, "a", 4), (21, "b", 5)]
EXPECTED = [
    (0.0, 10.0, "a", 1, 1),
    (0.0, 10.0, "b", 2, 1),
    (10.0, 20.0, "a", 7, 2),
    (20.0, 30.0, "b", 5, 1),
]


def test_one_step_is_one_batch_with_its_report(tmp_path: Path) -> None:
    sink, seen = MemorySink(), []
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path, sink, batch_rows=3)
    loop._on_batch = seen.append
    first = loop.step()
    assert first is not None
    assert (first.batch, first.rows_in, first.rows_out) == (0, 3, 2)
    assert (first.frontier_us, first.instances, first.epoch) == (11_000_000, 2, 0)
    assert first.newest_us == 11_000_000
    steps = {"gate", "draft", "operate", "collect", "manifest", "commit", "publish", BOOKS}
    assert set(first.spans_ms) == steps
    assert {"map read", "map fold", "instance merge", "instance close"} <= set(first.tasks_ms)
    assert rows_of(sink) == EXPECTED[:2]
    second = loop.step()
    assert second is not None
    assert second.rows_in == 2
    assert set(second.spans_ms) == steps | {BETWEEN}
    assert loop.step() is None
    assert seen == [first, second]
    loop.close()


class Ticking(ManualClock):
    """Time passes whenever somebody looks."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


def test_every_millisecond_of_a_batch_belongs_to_a_span(tmp_path: Path) -> None:
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path, batch_rows=3, clock=Ticking())
    first, second = loop.step(), loop.step()
    loop.close()
    assert first is not None
    assert second is not None
    assert sum(first.spans_ms.values()) == pytest.approx(first.seconds * 1e3)
    between_ms = second.spans_ms[BETWEEN]
    assert sum(second.spans_ms.values()) == pytest.approx(second.seconds * 1e3 + between_ms)


def test_a_finished_loop_has_nothing_more_to_do(tmp_path: Path) -> None:
    sink = MemorySink()
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, sink)
    assert loop.run().finished
    assert rows_of(sink) == EXPECTED
    assert loop.manifest.frontier_us == MAX_US
    assert loop.step() is None
    assert list(sink.batches) == [0]


def test_an_observer_sees_the_steps_in_order(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    loop = loop_of(
        plan_of(COUNTS),
        [memory(*ROWS, end=True)],
        tmp_path,
        observer=lambda step, batch: seen.append((step, batch)),
    )
    loop.run()
    assert seen == [(step, 0) for step in STEPS]


@pytest.mark.parametrize("sql", [COUNTS, PASSED])
def test_no_rows_are_one_batch_with_a_schema(tmp_path: Path, sql: str) -> None:
    sink = MemorySink()
    loop = loop_of(plan_of(sql), [memory(end=True)], tmp_path, sink)
    summary = loop.run()
    assert (summary.finished, summary.counters["batches"]) == (True, 1)
    assert summary.counters["rows_in"] == 0
    assert sink.table().schema == loop.plan.port(loop.plan.targets[0].edge).schema
    assert sink.table().num_rows == 0


def test_only_late_rows_after_the_first(tmp_path: Path) -> None:
    sink = MemorySink()
    rows: list[Row] = [(50, "a", 1), *[(t, "a", 1) for t in (1, 2, 49)]]
    loop = loop_of(plan_of(COUNTS), [memory(*rows, end=True)], tmp_path, sink, batch_rows=1)
    summary = loop.run()
    assert rows_of(sink) == [(50.0, 60.0, "a", 1, 1)]
    assert (summary.counters["rows_late"], summary.counters["rows_rejected"]) == (3, 0)
    late = pa.concat_tables([o.late["s"] for o in sink.batches.values() if o.late])
    assert late.column_names == [*SCHEMA.names, "_source", "_seq", "_reason"]
    assert late.column("_seq").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("sql", [COUNTS, PASSED])
def test_only_rejected_rows(tmp_path: Path, sql: str) -> None:
    sink = MemorySink()
    rows: list[Row] = [(None, "a", 1), (None, "b", 2)]
    loop = loop_of(plan_of(sql), [memory(*rows, end=True)], tmp_path, sink, batch_rows=1)
    summary = loop.run()
    assert summary.finished
    assert sink.table().num_rows == 0
    assert (summary.counters["rows_in"], summary.counters["rows_rejected"]) == (2, 2)
    rejected = [o.rejected for o in sink.batches.values() if o.rejected is not None]
    assert pa.concat_tables(rejected).column("_reason").to_pylist() == ["ts is NULL"] * 2


def test_a_stop_and_a_start_on_the_same_checkpoint_are_as_if_nothing_had_been(
    tmp_path: Path,
) -> None:
    source, sink = memory(*ROWS[:3]), MemorySink()
    loop = loop_of(plan_of(COUNTS), [source], tmp_path, sink)
    drain(loop)
    loop.stop()
    assert not loop.run().finished
    source.append(table(*ROWS[3:]))
    source.end()
    again = loop_of(plan_of(COUNTS), [source], tmp_path, sink)
    assert again.manifest.batch == 0
    assert again.summary.counters["rows_in"] == 3
    assert again.summary.as_dict()["state_rows"] > 0
    assert again.run().counters["rows_in"] == 5
    assert rows_of(sink) == EXPECTED
    assert sorted(sink.batches) == [0, 1]


NESTED = (
    "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k) "
    "[RANGE 20 SECONDS]"
)


def test_one_subquery_is_scaled_and_the_checkpoint_remembers(tmp_path: Path) -> None:
    source, sink = memory(*ROWS[:1]), MemorySink()
    plan = plan_of(NESTED)
    loop = loop_of(plan, [source], tmp_path, sink, instances=None, default_instances=2)
    drain(loop)
    loop.controls.ask(Request(Scale(5), "aggregate2"))
    source.append(table(*ROWS[1:3]))
    report = loop.step()
    assert report is not None
    assert (report.instances, report.epoch) == (5, 1)
    assert report.subqueries == ("aggregate",) * 2 + ("aggregate2",) * 5
    loop.controls.ask(Request(Scale(3)))
    source.append(table(*ROWS[3:4]))
    loop.step()
    loop.close()
    source.append(table(*ROWS[4:]))
    source.end()
    again = loop_of(plan, [source], tmp_path, sink, instances=None, default_instances=2)
    summary = again.run()
    found = {n: (m["epoch"], m["instances"]) for n, m in again.manifest.mappings.items()}
    assert found == {"aggregate": (1, 3), "aggregate2": (2, 3)}
    assert [(e["subquery"], e["batch"], e["instances"]) for e in summary.epochs] == [
        ("aggregate", 0, 2),
        ("aggregate2", 0, 2),
        ("aggregate2", 1, 5),
        ("aggregate", 2, 3),
        ("aggregate2", 2, 3),
    ]
    plain = MemorySink()
    loop_of(plan, [memory(*ROWS, end=True)], tmp_path / "plain", plain).run()
    assert rows_of(sink) == rows_of(plain)


def test_a_subquery_that_is_not_there_is_not_scaled(tmp_path: Path) -> None:
    loop = loop_of(plan_of(NESTED), [memory(end=True)], tmp_path)
    with pytest.raises(OptionError) as caught:
        loop.controls.ask(Request(Scale(3), "aggregat"))
    assert str(caught.value) == (
        "scale: must name a subquery of the query; got aggregat. "
        "Did you mean aggregate or aggregate2? There are: aggregate, aggregate2."
    )
    loop.close()
    shared = replace(plan_of(NESTED), strategy=QUERY_CLOUD)
    loop = loop_of(shared, [memory(end=True)], tmp_path / "shared")
    with pytest.raises(OptionError, match="query-cloud has one number of instances"):
        loop.controls.ask(Request(Scale(3), "aggregate"))
    loop.close()


def test_instances_change_between_batches_and_the_checkpoint_remembers(tmp_path: Path) -> None:
    source, sink = memory(*ROWS[:1]), MemorySink()
    plan = plan_of(COUNTS)
    loop = loop_of(plan, [source], tmp_path, sink, instances=None, default_instances=2)
    drain(loop)
    loop.controls.ask(Request(Scale(5)))
    source.append(table(*ROWS[1:3]))
    report = loop.step()
    assert report is not None
    assert (report.instances, report.epoch) == (5, 1)
    loop.controls.ask(Request(Scale(5)))
    source.append(table(*ROWS[3:4]))
    report = loop.step()
    assert report is not None
    assert report.epoch == 1
    loop.close()
    source.append(table(*ROWS[4:]))
    source.end()
    again = loop_of(plan, [source], tmp_path, sink, instances=None, default_instances=2)
    summary = again.run()
    assert again.manifest.instances == 5
    assert [(e["epoch"], e["batch"], e["instances"]) for e in summary.epochs] == [
        (0, 0, 2),
        (1, 1, 5),
    ]
    assert rows_of(sink) == EXPECTED


@pytest.mark.parametrize(("instances", "message"), [(0, "at least one"), (9, "the 8 buckets")])
def test_a_number_of_instances_that_cannot_be_is_refused_at_once(
    tmp_path: Path, instances: int, message: str
) -> None:
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)
    with pytest.raises(OptionError, match=message):
        loop.controls.ask(Request(Scale(instances)))
    report = loop.step()
    assert report is not None
    assert report.instances == 2
    loop.close()


def test_side_outputs_of_tuples_that_wait_are_counted_once(tmp_path: Path) -> None:
    """A stateless query reads waiting tuples again in every batch until the frontier passes."""
    a: list[Row] = [(10, "a", 0), (5, "late", 0), (None, "no time", 0), (20, "a", 1)]
    slow = memory((1, "b", 0), id="slow")
    sink = MemorySink()
    loop = loop_of(plan_of(PASSED), [memory(*a, id="fast"), slow], tmp_path, sink)
    drain(loop)
    for second in (2, 3, 12):
        slow.append(table((second, "b", second)))
        assert drain(loop) == 1
    loop.close()
    counters = loop.manifest.counters
    assert (counters["rows_late"], counters["rows_rejected"]) == (1, 1)
    late = [r for o in sink.batches.values() for t in o.late.values() for r in t.to_pylist()]
    assert [r["k"] for r in late] == ["late"]
    assert rows_of(sink) == [(1.0, "b", 0), (2.0, "b", 2), (3.0, "b", 3), (10.0, "a", 0)]


def test_waiting_tuples_are_found_again_after_a_restart(tmp_path: Path) -> None:
    fast = memory((10, "a", 0), (5, "late", 0), (20, "a", 1), id="fast", end=True)
    slow = memory((1, "b", 0), id="slow")
    sink = MemorySink()
    run_dry(loop_of(plan_of(PASSED), [fast, slow], tmp_path, sink))
    again = loop_of(plan_of(PASSED), [fast, slow], tmp_path, sink)
    slow.end()
    again.run()
    assert rows_of(sink) == [(1.0, "b", 0), (10.0, "a", 0), (20.0, "a", 1)]
    assert again.manifest.counters["rows_late"] == 1


@pytest.mark.parametrize("sql", [COUNTS, PASSED])
def test_state_on_a_file_system_in_memory(sql: str) -> None:
    place = (_MockFileSystem(), "some/checkpoint")
    source, sink = memory(*ROWS[:3]), MemorySink()
    drain(loop_of(plan_of(sql), [source], place, sink, batch_rows=2))
    source.append(table(*ROWS[3:]))
    source.end()
    loop_of(plan_of(sql), [source], place, sink, batch_rows=1).run()
    plain = MemorySink()
    loop_of(plan_of(sql), [memory(*ROWS, end=True)], (_MockFileSystem(), "x"), plain).run()
    assert rows_of(sink) == rows_of(plain)
    assert rows_of(sink)[0][0] == (0.0 if sql == COUNTS else 1.0)


def test_an_idle_source_lets_the_frontier_go(tmp_path: Path) -> None:
    clock, sink = ManualClock(), MemorySink()
    slow, fast = memory((1, "b", 1), id="slow"), memory(*ROWS, id="fast")
    plan = plan_of(COUNTS, idle_s=30)
    loop = loop_of(plan, [slow, fast], tmp_path, sink, clock)
    assert drain(loop) == 1
    assert loop.manifest.frontier_us == 1_000_000
    clock.advance(29)
    fast.append(table((22, "b", 1)))
    assert drain(loop) == 1
    assert loop.manifest.frontier_us == 1_000_000
    clock.advance(1)
    assert drain(loop) == 1
    assert loop.manifest.frontier_us == 22_000_000
    assert rows_of(sink)[0] == (0.0, 10.0, "a", 1, 1)
    slow.append(table((21, "late", 1), (25, "b", 1)))
    assert drain(loop) == 1
    assert loop.manifest.counters["rows_late"] == 1
    assert loop.manifest.frontier_us == 22_000_000
    loop.close()


def test_run_waits_between_looks_and_ends_with_the_input(tmp_path: Path) -> None:
    source = memory(*ROWS)

    class Ending(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.now() > 1:
                source.end()

    clock = Ending()
    loop = loop_of(plan_of(COUNTS), [source], tmp_path, clock=clock, poll_s=0.25)
    assert loop.run().counters["batches"] == 2
    assert clock.now() == pytest.approx(1.25)


def test_a_checkpoint_of_another_query_or_number_of_buckets_is_refused(tmp_path: Path) -> None:
    run_dry(loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path))
    with pytest.raises(CheckpointError, match="must be the checkpoint of this query"):
        loop_of(plan_of(PASSED), [memory(*ROWS)], tmp_path)
    with pytest.raises(CheckpointError, match="was made with 8 buckets"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path, buckets=4)


def test_manifests_without_meta_are_refused(tmp_path: Path) -> None:
    run_dry(loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path))
    (tmp_path / "meta.json").unlink()
    with pytest.raises(CheckpointError, match=r"must have its meta\.json"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)


def test_a_source_that_was_being_read_must_be_there_at_a_restart(tmp_path: Path) -> None:
    place = tmp_path / "rides.csv"
    csv(place, *ROWS)
    plan = plan_of(COUNTS)
    loop = loop_of(plan, [opened(str(place))], tmp_path / "c", batch_rows=2)
    loop.step()
    loop.close()
    other = csv(tmp_path / "other.csv", *ROWS)
    with pytest.raises(SourceError, match="was read up to row 2 by this checkpoint"):
        loop_of(plan, [opened(other)], tmp_path / "c")


class Once(MemorySink):
    """A sink that knows whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_loop_that_cannot_start_lets_go_of_what_it_opened(tmp_path: Path) -> None:
    place = csv(tmp_path / "rides.csv", *ROWS)
    plan = plan_of(COUNTS)
    loop = loop_of(plan, [opened(place)], tmp_path / "c", batch_rows=2)
    loop.step()
    loop.close()
    sink = Once()
    with pytest.raises(SourceError):
        loop_of(plan, [opened(csv(tmp_path / "b.csv", *ROWS))], tmp_path / "c", sink)
    assert sink.closed


def test_a_failure_before_the_commit_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    class Broken(LocalRunner):
        def run(self, job: Job) -> list[Outcome]:
            return super().run(job)[1:]

    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path)
    loop.runner = Broken()
    with pytest.raises(RunError, match=r"all 2 instances must answer once; got answers of \[1\]"):
        loop.run()
    assert Store.open(tmp_path).latest() is None
    sink = MemorySink()
    loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, sink).run()
    assert rows_of(sink) == EXPECTED


def test_a_sink_that_fails_after_the_commit_gets_the_batch_again(tmp_path: Path) -> None:
    given: list[tuple[int, int]] = []

    def take(rows: pa.Table, batch: int) -> None:
        given.append((batch, rows.num_rows))
        if len(given) == 2:
            raise OSError("no route")

    source = memory(*ROWS, end=True)
    first = loop_of(plan_of(COUNTS), [source], tmp_path, CallSink(take), batch_rows=3)
    with pytest.raises(SinkError, match="must accept batch 1; got OSError: no route"):
        first.run()
    again = loop_of(plan_of(COUNTS), [source], tmp_path, CallSink(take), batch_rows=3)
    assert again.run().finished
    assert given == [(0, 2), (1, 2), (1, 2)]


def test_a_new_memory_source_must_bring_the_rows_that_were_read(tmp_path: Path) -> None:
    """Positions count: the same program appends the same rows, then the new ones."""
    run_dry(loop_of(plan_of(COUNTS), [memory(*ROWS[:3])], tmp_path))
    sink = MemorySink()
    loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, sink).run()
    assert rows_of(sink) == EXPECTED[2:]


def test_before_the_first_source_speaks_nothing_is_final(tmp_path: Path) -> None:
    silent = MemorySource(time="ts", schema=SCHEMA, id="silent")
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS), silent], tmp_path)
    report = loop.step()
    assert report is not None
    assert (report.frontier_us, report.rows_out) == (MIN_US, 0)
    loop.close()
