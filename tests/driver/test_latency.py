"""From arrival to commit: exact numbers on a clock that the test moves, for every live source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.driver.scene import COUNTS, PASSED, SCHEMA, csv, loop_of, memory, plan_of, table
from tests.oracle.gate import PlainSource
from tests.oracle.latency import PlainLatency, plain_quantile
from tidegate.arrival import BEFORE, Floats, Growth, Int64s
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.driver.metric.text import ms_text
from tidegate.driver.report.latency import (
    RECENT_BATCHES,
    RELATIVE_ERROR,
    LatencyBins,
    LatencyLog,
    Sketch,
    exact,
)
from tidegate.driver.report.metrics import BatchReport
from tidegate.execute.runner import Draft
from tidegate.gate.answer_time import MOST_POSITIONS, AnsweredTuples
from tidegate.gate.intake import Intake
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import Output
from tidegate.source.files import FilesConnector
from tidegate.source.generator import open_generator
from tidegate.source.memory import MemorySource
from tidegate.testing import ManualClock


class Timed(ManualClock):
    """A clock on which a batch takes 40 ms up to its commit."""

    def observe(self, step: str, batch: int) -> None:
        if step == "before commit":
            self.advance(0.04)


def live(clock: ManualClock, *rows: Any, id: str = "memory") -> MemorySource:
    return MemorySource(table(*rows), time="ts", schema=SCHEMA, id=id, clock=clock)


def timed_loop(clock: Timed, source: Any, folder: Path, sql: str = PASSED, **options: Any) -> Loop:
    return loop_of(plan_of(sql), [source], folder, None, clock, observer=clock.observe, **options)


def stepped(loop: Loop) -> BatchReport:
    report = loop.step()
    assert report is not None
    return report


def ms_of(report: BatchReport) -> dict[str, float] | None:
    return None if report.latency is None else report.latency.as_dict()


def same(ms: float, tuples: int) -> dict[str, float]:
    """What is said of tuples that all took as long."""
    return {"p50": ms, "p95": ms, "p99": ms, "max": ms, "tuples": tuples}


def test_rows_of_memory_count_from_their_append_to_the_commit(tmp_path: Path) -> None:
    clock = Timed(100.0)
    source = live(clock, (0, "a", 1))
    loop = timed_loop(clock, source, tmp_path, COUNTS)
    clock.advance(0.5)
    source.append(table((1, "a", 1), (2, "a", 1)))
    clock.advance(0.06)
    report = stepped(loop)
    assert ms_of(report) == {"p50": 100.0, "p95": 600.0, "p99": 600.0, "max": 600.0, "tuples": 3}
    assert report.backlog is not None
    assert report.backlog.total == {"rows": 0, "bytes": 0, "files": 0}
    source.append(table((3, "a", 1)))
    assert ms_of(stepped(loop)) == same(40.0, 1)
    loop.close()


def test_a_tuple_that_waits_for_the_watermark_is_answered_when_that_has_passed_it(
    tmp_path: Path,
) -> None:
    """A query without windows emits ready tuples: the newest has to wait for one after it."""
    clock = Timed()
    source = live(clock, (0, "a", 1), (1, "a", 1))
    loop = timed_loop(clock, source, tmp_path)
    assert ms_of(stepped(loop)) == same(40.0, 1)
    clock.advance(0.96)
    source.append(table((1, "b", 1)))
    assert ms_of(stepped(loop)) is None, "it has the time of the one before, so both wait"
    clock.advance(0.46)
    source.append(table((5, "c", 1)))
    assert ms_of(stepped(loop)) == {
        "p50": 540.0,
        "p95": 1540.0,
        "p99": 1540.0,
        "max": 1540.0,
        "tuples": 2,
    }
    source.end()
    assert ms_of(stepped(loop)) == same(80.0, 1)
    summary = loop.summary.as_dict()
    assert summary["latency_ms"]["tuples"] == 4
    assert summary["latency_ms"]["max"] == 1540.0
    assert summary["latency_ms"]["p50"] == pytest.approx(80, rel=RELATIVE_ERROR)
    loop.close()


def test_what_was_appended_before_the_run_counts_from_its_start(tmp_path: Path) -> None:
    clock = Timed()
    source = live(clock, (0, "a", 1), (1, "a", 1))
    clock.advance(3600)
    loop = timed_loop(clock, source, tmp_path, COUNTS)
    clock.advance(0.01)
    assert ms_of(stepped(loop)) == same(50.0, 2)
    loop.close()


def test_starting_the_executor_is_not_latency(tmp_path: Path) -> None:
    """As the time that Spark takes to start is not part of the batch: `start_seconds` tells it."""
    clock = Timed()
    source = live(clock, (0, "a", 1))
    loop = timed_loop(clock, source, tmp_path, COUNTS)
    started: list[float] = []

    def start(drafts: Sequence[Draft]) -> bool:
        clock.advance(5.0)
        started.append(clock.now())
        return True

    loop.runner.start = start  # type: ignore[method-assign]
    report = stepped(loop)
    assert started == [5.0]
    assert ms_of(report) == same(40.0, 1)
    assert report.start_s == 5.0
    loop.close()


def test_rows_of_a_generator_arrive_by_its_schedule_and_not_when_they_are_read(
    tmp_path: Path,
) -> None:
    """Ten rows a second. The loop looks at 0, then stands still for a second: rows 1 to 10 came."""
    clock = Timed()
    source = open_generator("generator:trades?rows=12&pace=10&burst=0", "s", "ts", clock)
    stream = tg.Session(master="none").stream("generator:trades?rows=1", time="ts")
    counted = stream.window("1 hour").agg(n=tg.count())
    loop = loop_of(
        lower((Output(None, counted.node),)),
        [Connection(0, source)],
        tmp_path,
        None,
        clock,
        observer=clock.observe,
        batch_rows=8,
    )
    assert ms_of(stepped(loop)) == same(40.0, 1)
    clock.advance(0.96)
    report = stepped(loop)
    assert report.rows_in == 8, "rows 1 to 8, which came at 100 to 800 ms, are committed at 1040"
    assert ms_of(report) == {"p50": 540.0, "p95": 940.0, "p99": 940.0, "max": 940.0, "tuples": 8}
    assert report.backlog is not None
    assert report.backlog.total["rows"] == 2
    assert report.backlog.sources == {"generator:trades?rows=12&pace=10&burst=0": {"rows": 2}}
    clock.advance(0.3)
    last = stepped(loop)
    assert last.rows_in == 3, "those that were left, and the last, which came at 1100"
    assert ms_of(last) == {"p50": 380.0, "p95": 480.0, "p99": 480.0, "max": 480.0, "tuples": 3}
    assert loop.summary.as_dict()["backlog_max"]["rows"] == 2
    loop.close()


def files(clock: ManualClock, path: Path) -> Connection:
    return Connection(0, FilesConnector(str(path), "s", "ts", follow=True, clock=clock), str(path))


def test_rows_of_a_followed_file_come_evenly_between_two_looks(tmp_path: Path) -> None:
    """Nobody has seen when they came: some time between the look that found them and the last."""
    clock = Timed()
    csv(tmp_path / "s.csv", (0, "a", 1), (1, "a", 1))
    loop = timed_loop(clock, files(clock, tmp_path / "s.csv"), tmp_path / "c", COUNTS)
    assert ms_of(stepped(loop)) == same(40.0, 2), "what is there counts from the start"
    clock.advance(0.16)
    assert loop.step() is None
    csv(tmp_path / "s.csv", *((float(t), "a", 1) for t in (2, 3, 4, 5)), more=True)
    clock.advance(0.2)
    report = stepped(loop)
    looked_ms, found_ms, committed_ms = 200.0, 400.0, 440.0
    rows = [committed_ms - looked_ms - (found_ms - looked_ms) * n / 4 for n in (1, 2, 3, 4)]
    assert ms_of(report) == {
        "p50": plain_quantile(rows, 0.5),
        "p95": max(rows),
        "p99": max(rows),
        "max": max(rows),
        "tuples": 4,
    }
    csv(tmp_path / "s.csv", (6, "a", 1), more=True)
    clock.advance(0.01)
    assert loop.step() is not None
    loop.close()


def test_the_backlog_of_a_followed_file_is_told_in_bytes(tmp_path: Path) -> None:
    clock = Timed()
    path = tmp_path / "s.csv"
    csv(path, *((float(t), "a", 1) for t in range(10)))
    loop = timed_loop(clock, files(clock, path), tmp_path / "c", COUNTS, batch_rows=4)
    report = stepped(loop)
    assert report.backlog is not None
    header, line = len("ts,k,v\n"), len("1970-01-01T00:00:00+00:00,a,1\n")
    assert path.stat().st_size == header + 10 * line
    assert report.backlog.total == {"rows": 0, "bytes": 6 * line, "files": 0}
    csv(path, (10, "a", 1), more=True)
    left = stepped(loop).backlog
    assert left is not None
    assert left.total["bytes"] == 3 * line, "two of them, and the new one"
    loop.close()


def test_a_new_file_of_a_folder_came_halfway_between_two_looks(tmp_path: Path) -> None:
    clock = Timed()
    folder = tmp_path / "in"
    folder.mkdir()
    csv(folder / "1.csv", (0, "a", 1))
    loop = timed_loop(clock, files(clock, folder), tmp_path / "c", COUNTS, batch_rows=2)
    assert ms_of(stepped(loop)) == same(40.0, 1)
    looked = clock.now() - 0.04
    for number in range(2, 7):
        csv(folder / f"{number}.csv", *((10.0 * number + t, "a", 1) for t in (0, 1)))
    clock.advance(1.0)
    report = stepped(loop)
    came = (looked + clock.now() - 0.04) / 2
    assert ms_of(report) == same(pytest.approx((clock.now() - came) * 1e3), 2)
    assert report.backlog is not None
    left = report.backlog.total
    assert left == {"rows": 0, "bytes": 2 * 67, "files": 2}, "one was read ahead, one may grow"
    loop.close()


@pytest.mark.parametrize("kind", ["ended memory", "available now", "a file"])
def test_what_is_not_live_has_no_latency(kind: str, tmp_path: Path) -> None:
    clock = Timed()
    options: dict[str, Any] = {}
    source: Any = memory((0, "a", 1), end=True)
    if kind == "available now":
        source, options = live(clock, (0, "a", 1)), {"available_now": True}
    elif kind == "a file":
        uri = csv(tmp_path / "s.csv", (0, "a", 1))
        source = Connection(0, FilesConnector(uri, "s", "ts", clock=clock), uri)
    loop = timed_loop(clock, source, tmp_path / "c", **options)
    report = stepped(loop)
    assert (report.latency, report.recent_latency, report.backlog) == (None, None, None)
    said = loop.summary.as_dict()
    assert (said["latency_ms"], said["backlog"], said["backlog_max"]) == (None, None, None)
    assert "latency" not in loop.summary.text()
    assert "backlog" not in loop.summary.text()
    loop.close()


def test_a_generator_without_a_pace_has_no_latency_and_one_with_it_has() -> None:
    session = tg.Session(master="none")
    for pace, tuples in (("", None), ("&pace=1e6", 10)):
        stream = session.stream(f"generator:trades?rows=10{pace}", time="ts")
        said = stream.start(sink=tg.sink.memory()).wait().as_dict()["latency_ms"]
        assert (None if said is None else said["tuples"]) == tuples


def test_the_summary_and_the_status_tell_it(tmp_path: Path) -> None:
    clock = Timed()
    source = live(clock, (0, "a", 1), (1, "b", 2), (2, "c", 3))
    loop = timed_loop(clock, source, tmp_path, COUNTS, batch_rows=2)
    stepped(loop)
    lines = loop.summary.text().splitlines()
    assert lines[3] == "latency p50 40 ms, p95 40 ms, p99 40 ms, max 40 ms, from arrival to commit"
    assert lines[4] == "backlog 1 row"
    stepped(loop)
    assert loop.summary.text().splitlines()[4] == "backlog none, at most 1 row"
    status = tg.RunningQuery(loop).status()
    assert status["newest_latency_ms"] == same(80.0, 1)
    assert status["latency_ms"]["tuples"] == 3
    assert status["backlog"] == {
        "rows": 0,
        "bytes": 0,
        "files": 0,
        "sources": {"memory": {"rows": 0}},
    }
    loop.close()


def test_a_tuple_that_a_crash_left_waiting_counts_from_the_new_start(tmp_path: Path) -> None:
    clock = Timed()
    source = live(clock, (0, "a", 1), (1, "a", 1))
    first = timed_loop(clock, source, tmp_path)
    assert ms_of(stepped(first)) == same(40.0, 1)
    first.close()
    clock.advance(1000)
    second = timed_loop(clock, source, tmp_path)
    clock.advance(0.1)
    source.end()
    assert ms_of(stepped(second)) == same(140.0, 1)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.integers(0, 1),
            st.lists(st.one_of(st.none(), st.integers(0, 30)), min_size=1, max_size=5),
        ),
        st.tuples(st.just("pass"), st.integers(1, 50)),
        st.tuples(st.just("batch"), st.integers(1, 7), st.integers(0, 20)),
        st.tuples(st.just("end"), st.integers(0, 1)),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(actions=ACTIONS, hold=st.booleans(), disorder_us=st.sampled_from([0, 5]))
@example(
    actions=[("append", 0, [5, 3, None]), ("batch", 7, 1), ("end", 1), ("batch", 7, 2)],
    hold=True,
    disorder_us=0,
)
def test_every_tuple_counts_once_with_its_own_latency(
    actions: list[Any], hold: bool, disorder_us: int
) -> None:
    """Any arrivals, cuts, lateness and watermarks, against a count tuple by tuple."""
    clock = ManualClock(10.0)
    sources = [MemorySource(time="ts", schema=SCHEMA, id=f"{i}", clock=clock) for i in (0, 1)]
    intake, latency = Intake(hold), LatencyLog(clock.now())
    plain = PlainLatency(hold, clock.now(), [PlainSource(disorder_us) for _ in sources])
    for number, source in enumerate(sources):
        intake.add(number, source, disorder_us)
    every: list[float] = []

    def batch(limit: int, takes_ms: int) -> bool:
        cut = intake.next_cut(limit, clock.now())
        if cut is None:
            return False
        clock.advance(takes_ms / 1e3)
        found = latency.committed(cut.completed, clock.now())
        intake.answered()
        taken = [next(iter(inlet.tracks.values())).position for inlet in intake.inlets]
        wanted = plain.committed(taken, cut.frontier_us, clock.now())
        assert (0 if found is None else found.tuples) == len(wanted)
        if found is not None:
            shares = zip((0.5, 0.95, 0.99, 1.0), found.percentiles(), strict=True)
            for share, (_, ms) in shares:
                assert ms == pytest.approx(plain_quantile(wanted, share) * 1e3, abs=1e-3)
        every.extend(wanted)
        return not cut.exhausted

    for action in actions:
        if action[0] == "append" and sources[action[1]].arrives:
            for ts in action[2]:
                plain.arrive(action[1], ts, clock.now())
            rows = [(None if ts is None else ts / 1e6, "k", 1) for ts in action[2]]
            sources[action[1]].append(table(*rows))
        elif action[0] == "pass":
            clock.advance(action[1] / 1e3)
        elif action[0] == "end":
            sources[action[1]].end()
        elif action[0] == "batch" and not batch(action[1], action[2]):
            continue
    for source in sources:
        source.end()
    while batch(3, 1):
        pass
    assert len(every) == sum(map(len, plain.tuples)), "each tuple is answered once"
    over = latency.as_dict()["latency_ms"]
    assert (over is None) == (not every)


@given(
    values=st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 1000)), min_size=1, max_size=200)
)
def test_quantiles_over_a_run_are_within_one_percent(values: list[tuple[float, int]]) -> None:
    """The guarantee of `Sketch`, against the sorted list; added in two parts."""
    seconds = np.array([v for v, _ in values])
    counts = np.array([n for _, n in values], np.int64)
    sketch, half = Sketch(), len(values) // 2
    sketch.add(LatencyBins.of(seconds[:half], counts[:half]))
    sketch.add(LatencyBins.of(seconds[half:], counts[half:]))
    found, wanted = sketch.quantiles(), exact(seconds, counts)
    assert found is not None
    assert wanted is not None
    assert found.tuples == wanted.tuples == int(counts.sum())
    for (_, ms), (_, true_ms) in zip(found.percentiles(), wanted.percentiles(), strict=True):
        assert ms == pytest.approx(true_ms, rel=RELATIVE_ERROR * 1.001, abs=2e-3)
    assert found.max_ms == wanted.max_ms


def test_of_very_many_tuples_some_stand_for_the_others() -> None:
    class Second:
        """A tuple arrives in every second."""

        def at(self, positions: Int64s) -> Floats:
            return positions.astype(np.float64)

        def drop(self, position: int) -> None:
            raise AssertionError("only sources drop")

    rows = 1_000_003
    completed = AnsweredTuples.of_range(Second(), 7, 7 + rows)
    assert len(completed.arrived_at) == MOST_POSITIONS
    assert int(completed.counts.sum()) == rows
    assert completed.arrived_at[0] == 7, "the oldest stands for itself: the largest is exact"
    assert completed.counts.max() - completed.counts.min() <= 1
    picked = AnsweredTuples.of(Second(), np.arange(10, dtype=np.int64) * 3)
    assert list(picked.arrived_at) == [*range(0, 30, 3)]
    assert set(picked.counts) == {1}


def test_what_is_kept_of_a_file_that_grows_is_bounded() -> None:
    """Also where nothing of it is ever consumed; and what is consumed is dropped."""
    growth = Growth(10, BEFORE, 0.0)
    for look in range(1, 10_001):
        growth.look(10 + look, float(look))
    assert len(growth) <= 1025
    near = growth.at(np.array([5_010, 10_010]))
    assert near == pytest.approx([5_000, 10_000], abs=20)
    kept = len(growth)
    growth.drop(9_000)
    assert len(growth) < kept - 100
    assert growth.at(np.array([10_010]))[0] == pytest.approx(10_000, abs=20)
    assert growth.at(np.array([9_500]))[0] == pytest.approx(9_490, abs=20)


def test_milliseconds_as_text() -> None:
    said = [ms_text(ms) for ms in (0.0, 0.0042, 0.424, 1.04, 9.96, 12.3, 999.6, 4321, 62_000)]
    assert said == [
        "0.00 ms",
        "0.004 ms",
        "0.42 ms",
        "1.0 ms",
        "10 ms",
        "12 ms",
        "1.0 s",
        "4.3 s",
        "62 s",
    ]
    assert math.isinf(BEFORE)


@given(
    batches=st.lists(st.lists(st.floats(1e-6, 1e3), max_size=4), max_size=12),
    newest=st.integers(1, 5),
)
def test_of_recent_batches_only_the_newest_count(batches: list[list[float]], newest: int) -> None:
    recent, fresh = Sketch(newest), Sketch()
    binned = [LatencyBins.of(np.array(b), np.ones(len(b), np.int64)) for b in batches]
    for batch in binned:
        recent.add(batch)
    for batch in binned[-newest:]:
        fresh.add(batch)
    assert recent.quantiles() == fresh.quantiles()


def about(ms: float, tuples: int) -> Any:
    """What a sketch says of tuples that all took as long."""
    return pytest.approx(same(ms, tuples), rel=RELATIVE_ERROR)


def test_the_first_batch_is_told_apart_and_not_among_recent_ones(tmp_path: Path) -> None:
    clock = Timed()
    source = live(clock, (0, "a", 1))
    loop = timed_loop(clock, source, tmp_path, COUNTS)
    clock.advance(5)
    first = stepped(loop).recent_latency
    assert first is not None
    assert first.as_dict() == same(5040.0, 1)
    for second in range(1, RECENT_BATCHES + 2):
        source.append(table((second, "a", 1)))
        report = stepped(loop)
        assert report.recent_latency is not None
        assert report.recent_latency.as_dict()["max"] == pytest.approx(40.0, rel=RELATIVE_ERROR)
    assert report.recent_latency is not None
    assert report.recent_latency.as_dict() == about(40.0, RECENT_BATCHES)
    found = loop.summary.as_dict()
    assert found["latency_ms"]["max"] == 5040.0
    assert found["latency_ms"]["tuples"] == RECENT_BATCHES + 2
    assert found["latency_first_batch_ms"] == same(5040.0, 1)
    assert found["latency_later_batches_ms"] == about(40.0, RECENT_BATCHES + 1)
    assert found["latency_recent_batches_ms"] == about(40.0, RECENT_BATCHES)
    lines = loop.summary.text().splitlines()
    assert lines[3] == (
        "latency p50 40 ms, p95 40 ms, p99 40 ms, max 40 ms, from arrival to commit; "
        "the first batch 5.0 s at most"
    )
    loop.close()


def test_what_is_late_is_plain_data_for_a_policy_to_remember() -> None:
    """A comparison with a number of NumPy's is no JSON: `auto` failed from then on."""
    sketch = Sketch()
    sketch.add(LatencyBins.of(np.array([3.0, 4.0]), np.array([5, 5])))
    found = sketch.quantiles()
    assert found is not None
    assert {type(ms) for _, ms in found.percentiles()} == {float}
