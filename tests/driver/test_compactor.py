"""Compaction beside the loop: it happens, keeps results, and bounds the work of a batch."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import Row, compacted, drain, loop_of, memory, plan_of, rows_of, table
from tests.state.faulty import Steps, faulty
from tidegate import schedule
from tidegate.batch import MIN_US
from tidegate.driver import compactor as compactor_module
from tidegate.driver.compactor import Compactor
from tidegate.driver.loop import Loop
from tidegate.errors import StateError
from tidegate.execute.local import LocalRunner
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.state import PaneHorizon, PaneKeeper
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.sink.memory import MemorySink
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

T = TypeVar("T")

LONG = (
    "SELECT k, SUM(v) AS v, COUNT(DISTINCT v) AS d, LAST(v) AS l "
    "FROM s [RANGE 400 SECONDS SLIDE 100 SECONDS] GROUP BY k"
)
ROWS: list[Row] = [(t, "abcde"[t % 5], t * 7 % 13) for t in range(180)]


def step_and_compact(loop: Loop) -> list[Segment]:
    """One batch, with the compaction it starts done before the next."""
    assert loop.step() is not None
    compacted(loop)
    return list(loop.manifest.operators["aggregate/panes"])


def test_many_small_batches_keep_few_segments_and_the_same_results() -> None:
    """One row per batch and a long window: the work of a batch must not grow with their number."""
    steps = Steps()
    sink, source = MemorySink(), memory()
    place = (faulty(_MockFileSystem(), steps), "checkpoint")
    loop = loop_of(plan_of(LONG), [source], place, sink, instances=2)
    live, work = [], []
    for row in ROWS:
        source.append(table(row))
        before = Counter(steps.kinds)
        segments = step_and_compact(loop)
        live.append(len(segments))
        work.append(sum((steps.kinds - before).values()))
    assert max(live) <= 20
    early, late = work[20:60], work[-40:]
    assert np.mean(late) <= 1.2 * np.mean(early)
    assert max(late) <= 1.5 * max(early)
    assert any("compact" in s.name for s in segments)
    source.end()
    drain(loop)
    loop.close()
    plain = MemorySink()
    loop_of(plan_of(LONG), [memory(*ROWS, end=True)], (_MockFileSystem(), "x"), plain).run()
    assert rows_of(sink) == rows_of(plain)
    assert len(rows_of(plain)) == 5 * 5


def test_a_restart_on_compacted_state_gives_the_same_results() -> None:
    sink, source = MemorySink(), memory()
    place = (_MockFileSystem(), "checkpoint")
    for part in range(0, 36, 12):
        loop = loop_of(plan_of(LONG), [source], place, sink, instances=1 + part // 12)
        for row in ROWS[part : part + 12]:
            source.append(table(row))
            step_and_compact(loop)
        loop.close()
    source.end()
    last = loop_of(plan_of(LONG), [source], place, sink)
    assert any("compact" in s.name for s in last.manifest.operators["aggregate/panes"])
    last.run()
    plain = MemorySink()
    loop_of(plan_of(LONG), [memory(*ROWS[:36], end=True)], (_MockFileSystem(), "x"), plain).run()
    assert rows_of(sink) == rows_of(plain)


def test_state_goes_when_its_windows_have_closed() -> None:
    sql = "SELECT k, SUM(v) AS v FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k"
    source, place = memory(), (_MockFileSystem(), "checkpoint")
    loop = loop_of(plan_of(sql), [source], place)
    state, files = [], []
    for row in ROWS[:80]:
        source.append(table(row))
        state.append(sum(s.rows for s in step_and_compact(loop)))
        files.append(len(loop.store.files.list("segment")))
        assert len(loop.store.files.list("manifest")) <= 2
    assert max(state[40:]) <= max(state[:40]) < 40
    assert max(files[40:]) <= max(files[:40]) < 40
    source.end()
    drain(loop)
    loop.close()
    assert loop.manifest.operators["aggregate/panes"] == ()
    loop_of(plan_of(sql), [source], place).close()
    listed = {s.path for m in loop.store.kept() for s in m.segments()}
    assert {e.name for e in loop.store.files.list("segment")} == listed


SPEC = AggregateSpec(PaneWindow(4_000_000, 1_000_000), (), (Function("a0", "count"),))
"""Windows of four panes of a second each."""


def partials(store: Store, name: str, panes: list[int], sealed: int) -> Segment:
    schema = SPEC.partial_schema
    values = {"bucket": [0] * len(panes), "pane": panes}
    columns = [pa.array(values.get(f.name, [1] * len(panes)), f.type) for f in schema]
    return write_segment(store, name, pa.table(columns, schema=schema), "pane", sealed)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path)
    made.create({})
    return made


def test_what_a_frontier_leaves_behind(store: Store) -> None:
    horizon = PaneHorizon.at(SPEC, 10_000_000)
    assert (horizon.needed, horizon.sealed) == (7, 10)
    whole = partials(store, "a", [5, 6], sealed=8)
    assert horizon.passed(whole)
    assert not horizon.passed(partials(store, "b", [5, 7], sealed=8))
    assert horizon.passed(partials(store, "c", [8, 9], sealed=8))
    assert not horizon.passed(partials(store, "d", [8, 10], sealed=8))
    between = partials(store, "e", [6, 9], sealed=8)
    assert not horizon.passed(between), "its bounds alone do not tell"
    assert PaneHorizon.at(SPEC, MIN_US).passed(whole) is False


def test_rows_that_are_live(store: Store) -> None:
    segment = partials(store, "a", [5, 6, 7, 8, 9, 10, 11], sealed=9)
    rows = pa.table({"pane": [5, 6, 7, 8, 9, 10, 11]})
    live = PaneHorizon.at(SPEC, 10_000_000).live(rows, segment)
    assert live.tolist() == [False, False, True, True, False, True, True]


def test_one_piece_of_work_at_a_time_and_its_result_in_place(store: Store) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = [partials(store, f"{i:08d}-0000", [20], 0) for i in range(4)]
    assert compactor.apply(segments) == tuple(segments)
    compactor.consider(3, segments, 0)
    pieces = list(compactor._pieces)
    compactor.consider(4, segments, 0)
    assert compactor._pieces == pieces
    compactor.wait()
    newest = partials(store, "00000004-0000", [21], 0)
    placed = compactor.apply([*segments, newest])
    assert [s.name for s in placed] == ["00000003.0-compact-00", "00000004-0000"]
    assert placed[0].rows == 4
    compactor.close()


def test_a_rewrite_of_segments_that_were_purged_meanwhile_is_dropped(store: Store) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = [partials(store, f"{i:08d}-0000", [20], 0) for i in range(4)]
    compactor.consider(3, segments, 0)
    compactor.wait()
    assert compactor.apply(segments[1:]) == tuple(segments[1:])
    compactor.wait()
    assert not store.files.exists("segment/00000003.0-compact-00.arrow")
    compactor.close()


def test_a_rewrite_that_no_manifest_will_list_goes_at_the_end(store: Store) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = [partials(store, f"{i:08d}-0000", [20], 0) for i in range(4)]
    compactor.consider(3, segments, 0)
    compactor.close()
    assert not store.files.exists("segment/00000003.0-compact-00.arrow")
    assert all(store.files.exists(s.path) for s in segments)


def test_a_failure_is_raised_by_the_next_batch(store: Store) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = [partials(store, f"{i:08d}-0000", [20], 0) for i in range(4)]
    store.delete(segments[2].path)
    compactor.consider(3, segments, 0)
    compactor.wait()
    with pytest.raises(Exception, match="00000002-0000"):
        compactor.apply(segments)
    compactor.consider(4, segments, 0)
    compactor.wait()
    assert compactor.apply(segments[3:]) == tuple(segments[3:])
    compactor.close()


class Tasks(LocalRunner):
    """Counts what it is given to run beside the batches, and runs it or not."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken
        self.given: list[Callable[..., object]] = []

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        self.given.append(function)
        if not self.broken:
            return super().submit(pickle.loads(pickle.dumps(function)), *arguments)
        future: Future[T] = Future()
        future.set_exception(BrokenExecutor("worker 7 is gone"))
        return future


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 40 rows are work for a task."""
    monkeypatch.setattr(compactor_module, "TASK_ROWS", 40)


def quarters(store: Store, batch: int, rows: int) -> list[Segment]:
    """Four segments that are worth merging."""
    return [partials(store, f"{batch + i:08d}-0000", [20] * rows, 0) for i in range(4)]


@pytest.mark.usefixtures("large")
def test_a_large_group_is_rewritten_by_a_task_and_a_small_one_here(store: Store) -> None:
    tasks, compactor = Tasks(), Compactor(store, PaneKeeper(SPEC))
    for batch, rows in ((0, 9), (10, 10)):
        segments = quarters(store, batch, rows)
        compactor.consider(batch, segments, 0, runner=tasks)
        compactor.wait()
        (made,) = compactor.apply(segments)
        assert made.rows == 4 * rows
        compactor.settle([made])
    assert len(tasks.given) == 1
    compactor.close()


def test_many_bytes_make_a_group_large_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = quarters(store, 0, 1)
    for limit, given in ((sum(s.bytes for s in segments) + 1, 0), (1, 1)):
        monkeypatch.setattr(compactor_module, "TASK_BYTES", limit)
        tasks, compactor = Tasks(), Compactor(store, PaneKeeper(SPEC))
        compactor.consider(0, segments, 0, runner=tasks)
        compactor.wait()
        assert len(tasks.given) == given
        compactor.close()


@pytest.mark.usefixtures("large")
def test_a_task_that_died_leaves_its_group_as_it_was(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = quarters(store, 0, 10)
    compactor.consider(3, segments, 0, runner=Tasks(broken=True))
    compactor.wait()
    assert compactor.apply(segments) == tuple(segments)
    said = "00000003.0-compact-00: its segments stay as they are: worker 7 is gone"
    assert said in caplog.text
    compactor.consider(4, segments, 0, runner=Tasks())
    compactor.wait()
    (made,) = compactor.apply(segments)
    assert made.rows == 40
    compactor.close()


@pytest.mark.usefixtures("large")
def test_damage_that_a_task_finds_is_told_by_the_next_batch(store: Store) -> None:
    compactor = Compactor(store, PaneKeeper(SPEC))
    segments = quarters(store, 0, 10)
    store.delete(segments[2].path)
    compactor.consider(3, segments, 0, runner=Tasks())
    compactor.wait()
    with pytest.raises(StateError, match="00000002-0000"):
        compactor.apply(segments)
    compactor.close()


def test_a_run_whose_groups_are_all_rewritten_by_tasks_has_the_same_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for rows in (1, 10**9):
        monkeypatch.setattr(compactor_module, "TASK_ROWS", rows)
        source, sink, tasks = memory(), MemorySink(), Tasks()
        loop = loop_of(plan_of(LONG), [source], (_MockFileSystem(), "c"), sink, instances=2)
        loop.runner = tasks
        for row in ROWS[:60]:
            source.append(table(row))
            step_and_compact(loop)
        assert bool(tasks.given) == (rows == 1)
        source.end()
        drain(loop)
        loop.close()
        found.append((rows_of(sink), loop.manifest.segments()))
    assert found[0] == found[1]


@dataclass(frozen=True)
class Apart(Keeper):
    """A keeper of rows that are not grouped by bucket: all segments are of one instance."""

    order = "ts"
    cell = 10**9
    dead_share = 0.4
    grouped = False

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon("ts", frontier_us, tag=0)

    columns = None

    def arrange(self, rows: pa.Table) -> pa.Table:
        return rows.take(pa.array(np.argsort(rows.column("key").to_numpy(), kind="stable")))


@pytest.mark.parametrize("step_us", [10, 9, 5, 0])
def test_equal_keys_stay_in_the_total_order_when_segments_are_merged(
    step_us: int, tmp_path: Path
) -> None:
    """After a switch an instance has segments of one time, side by side."""
    store = Store.open(str(tmp_path))
    segments = []
    for number in range(4):
        ts = np.arange(number * step_us, number * step_us + 10)
        rows = pa.table(
            {
                "ts": ts,
                "src": np.full(10, number),
                "seq": np.arange(10),
                "bucket": pa.array(np.zeros(10), pa.int32()),
                "key": ts % 2,
            }
        )
        segments.append(write_segment(store, str(number), Apart().arrange(rows), "ts", 0, False))
    compactor = Compactor(store, Apart())
    compactor.consider(0, segments, 0, owners=[0])
    compactor.wait()
    (merged,) = compactor.apply(segments)
    found = read_segment(store, merged).select(["key", "ts", "src", "seq"]).to_pylist()
    places = [tuple(row.values()) for row in found]
    assert len(places) == 40
    assert places == sorted(places)


class Slow(LocalRunner):
    """Has begun with what it is given, and is not done before it is told to be."""

    def __init__(self) -> None:
        self.begun, self.go_on = Event(), Event()

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        self.begun.set()
        self.go_on.wait()
        return super().submit(function, *arguments)


def in_turn(store: Store, numbers: Sequence[int], rows: int) -> list[Segment]:
    """Segments that follow each other."""
    made = []
    for number in numbers:
        ts = np.arange(number * 100, number * 100 + rows)
        columns = {"ts": ts, "src": ts * 0, "seq": ts, "key": ts % 7}
        columns["bucket"] = np.zeros(rows, np.int32)
        name = f"{number:08d}-0000"
        made.append(write_segment(store, name, pa.table(columns), "ts", 0, grouped=False))
    return made


@pytest.mark.usefixtures("large")
def test_small_segments_do_not_pile_up_while_a_large_group_is_rewritten(store: Store) -> None:
    slow, compactor = Slow(), Compactor(store, Apart())
    large = in_turn(store, range(4), rows=20)
    compactor.consider(3, large, 0, runner=slow)
    assert slow.begun.wait(60)
    new = in_turn(store, range(4, 8), rows=5)
    compactor.consider(7, [*large, *new], 0, runner=slow)
    assert len(compactor._pieces) == 2
    schedule.wait([compactor._pieces[1].running])
    *kept, made = compactor.apply([*large, *new])
    assert (kept, made.rows) == (large, 20)
    compactor.consider(8, [*large, made], 0, runner=slow)
    slow.go_on.set()
    compactor.wait()
    assert [s.rows for s in compactor.apply([*large, made])] == [80, 20]
    compactor.close()
