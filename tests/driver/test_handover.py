"""Buckets that change hands while windows are open: the same output by every handover."""

from __future__ import annotations

import logging
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import drain, loop_of, memory, plan_of, rows_of
from tests.property.course import IN_MEMORY
from tidegate.batch import TS, ints
from tidegate.driver.loop import Loop
from tidegate.elastic.handover import STATE, WINDOW
from tidegate.elastic.request import Request, Scale
from tidegate.execute import local
from tidegate.execute.job import Job
from tidegate.execute.task import run_instance
from tidegate.operate.aggregate import state as pane_state
from tidegate.operate.aggregate.state import read_panes
from tidegate.operate.instance_cache import Kept
from tidegate.operate.instance_cache import forget as forget_kept
from tidegate.operate.join.chain.stored_segment import StoredSegments
from tidegate.operate.operator import InstanceWork
from tidegate.plan.physical import Plan
from tidegate.sink.memory import MemorySink
from tidegate.state.epoch import epoch_text
from tidegate.state.segment import segment as segment_module
from tidegate.state.segment.piece import fetched_bytes

SLIDING = (
    "SELECT k, SUM(v) AS v, COUNT(*) AS n, MEDIAN(v) AS m, LAST(v) AS o "
    "FROM s [RANGE 12 SECONDS SLIDE 4 SECONDS] GROUP BY k"
)
TUMBLING = "SELECT k, COUNT(*) AS n FROM s [RANGE 7 SECONDS] GROUP BY k"
FIRST = (
    "SELECT k, SUM(v) AS v FROM s [RANGE 9 SECONDS SLIDE 2 SECONDS] GROUP BY k "
    "ORDER BY v DESC LIMIT 3"
)
BY_KEY = (
    "SELECT l.k AS k, l.v AS l, r.v AS r FROM s AS l [RANGE 3 SECONDS] "
    "JOIN s AS r [RANGE 5 SECONDS] ON l.k = r.k"
)
BAND = (
    "SELECT l.v AS l, r.v AS r FROM s AS l [RANGE 4 SECONDS] "
    "JOIN s AS r [RANGE 2 SECONDS] ON l.v BETWEEN r.v - 9 AND r.v + 7 AND l.k <> r.k"
)
ANY = (
    "SELECT l.v AS l, r.v AS r FROM s AS l [RANGE 1 SECOND] JOIN s AS r [RANGE 3 SECONDS] "
    "ON l.k < r.k OR l.v % 7 = r.v % 5"
)
LAST = (
    "SELECT l.v AS l, r.v AS r FROM s AS l [ROWS 40] JOIN s AS r [ROWS 25] "
    "ON l.v BETWEEN r.v - 9 AND r.v + 7 AND l.k <> r.k"
)
LAST_BY_KEY = (
    "SELECT l.k AS k, l.v AS l, r.v AS r FROM s AS l [ROWS 30] JOIN s AS r [RANGE 2 SECONDS] "
    "ON l.k = r.k"
)
QUERIES = {
    "sliding": SLIDING,
    "tumbling": TUMBLING,
    "first of a window": FIRST,
    "join by key": BY_KEY,
    "band join": BAND,
    "join on anything": ANY,
    "band join of the last tuples": LAST,
    "last tuples by key": LAST_BY_KEY,
}
ROWS = [(t / 10, f"k{t * t % 11}", (t * 37) % 101) for t in range(160)]
BATCH_ROWS = 11


def spread_out(plan: Plan) -> Plan:
    """The plan as where instances are on several hosts, each with a part of a grid."""
    across = [replace(s, operator=s.operator.across_hosts()) for s in plan.subqueries]
    return replace(plan, subqueries=tuple(across))


def switched(loop: Loop, chance: random.Random, how_often: float) -> int:
    """Step to the end, and ask for other numbers of instances now and then; how often."""
    asked = 0
    while not loop.manifest.finished:
        if chance.random() < how_often:
            loop.controls.ask(Request(Scale(chance.randint(1, 6))))
            asked += 1
        assert loop.step() is not None
    return asked


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that costs no writes to a disk, where there is one."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        yield Path(folder)


def plain(plan: Plan, place: Path) -> list[tuple[Any, ...]]:
    """What the query gives without a switch."""
    sink = MemorySink()
    loop = loop_of(plan, [memory(*ROWS, end=True)], place, sink, batch_rows=200)
    drain(loop)
    loop.close()
    rows = rows_of(sink)
    assert len(rows) > 15
    return rows


@contextmanager
def forgetful(share: float) -> Iterator[None]:
    """Instances that do not find some of what they have kept in memory."""
    chance, take = random.Random(3), Kept.take

    def taken(kept: Kept, what: str, moved: bool = False) -> Any | None:
        value = take(kept, what, moved)
        return None if chance.random() < share else value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kept, "take", taken)
        yield


@contextmanager
def watched() -> Iterator[list[int]]:
    """Counts the rows that instances read, and sees that no new owner reads what it has not."""
    counts: list[int] = []

    def own(work: InstanceWork, rows: pa.Table, times: Any) -> None:
        bucket = ints(rows, "bucket")
        for former in work.mapping.formers:
            theirs = np.array(former.owners)[bucket] != work.instance
            was = [f for f in work.mapping.formers if f.until_us <= former.until_us]
            ever = np.any([np.array(f.owners)[bucket] == work.instance for f in was], axis=0)
            assert not (theirs & ~ever & (times < former.until_us)).any()
        counts.append(rows.num_rows)

    read, newest = StoredSegments.read, StoredSegments._rows

    def tuples(stored: StoredSegments, *arguments: Any, **named: Any) -> Any:
        found = read(stored, *arguments, **named)
        if len(stored.sights) > 1:
            for held in found:
                own(stored.work, held.table, ints(held.table, TS))
        return found

    def newest_tuples(stored: StoredSegments, *arguments: Any) -> Iterator[pa.Table]:
        for rows in newest(stored, *arguments):
            if len(stored.sights) > 1:
                own(stored.work, rows, ints(rows, TS))
            yield rows

    def panes(work: InstanceWork, spec: Any) -> Any:
        found = read_panes(work, spec)
        for part in (*found.complete, *found.waiting):
            own(work, part.rows, ints(part.rows, "pane") * spec.window.pane_us)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredSegments, "read", tuples)
        patch.setattr(StoredSegments, "_rows", newest_tuples)
        patch.setattr(pane_state, "read_panes", panes)
        yield counts


@pytest.mark.parametrize("query", QUERIES)
def test_switches_by_any_handover_give_the_rows_of_a_run_without(query: str, place: Path) -> None:
    plan = plan_of(QUERIES[query])
    wanted = plain(plan, place / "plain")
    for handover, forget in ((STATE, 0.0), (WINDOW, 0.5)):
        sink = MemorySink()
        loop = loop_of(
            plan,
            [memory(*ROWS, end=True)],
            place / f"{handover} {forget}",
            sink,
            batch_rows=BATCH_ROWS,
            handover=handover,
        )
        with forgetful(forget), watched() as counts:
            assert switched(loop, random.Random(query), 0.5) > 5
        loop.close()
        assert rows_of(sink) == wanted
        assert sum(e.get("handover") == handover for e in loop.manifest.epochs) > 2
        assert bool(counts) or not forget


def transition(query: str, place: Path) -> tuple[dict[str, Any], int]:
    """The record of one switch by window recreation, and the batches until it was completed."""
    plan = plan_of(query)
    wanted, sink = plain(plan, place / "plain"), MemorySink()
    loop = loop_of(
        plan, [memory(*ROWS, end=True)], place / "switched", sink, batch_rows=8, handover=WINDOW
    )
    lasted = 0
    while loop.step() is not None:
        if loop.manifest.batch == 4:
            loop.controls.ask(Request(Scale(3)))
        epoch = dict(loop.manifest.epochs[-1])
        lasted += epoch.get("handover") == WINDOW and "completed" not in epoch
        assert (" (under way)" in epoch_text(epoch)) == (lasted > 0 and "completed" not in epoch)
    loop.close()
    assert rows_of(sink) == wanted
    return epoch, lasted


def test_a_switch_is_completed_when_former_owners_have_finished(place: Path) -> None:
    """Of 8 tuples in a batch 40 have come after five; 2 seconds pass with two and a half."""
    epoch, lasted = transition(LAST, place / "last")
    assert epoch["over_tuples"] == {"left": 39 + 40, "right": 39 + 25}
    assert epoch["completed"] > epoch["applied"]
    assert lasted == 4
    epoch, lasted = transition(BAND.replace("4 SECONDS", "2 SECONDS"), place / "band")
    assert "over_tuples" not in epoch
    assert lasted == 2


def test_former_owners_do_not_wait_for_tuples_for_ever(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidegate.elastic.handover.MOST_BATCHES", 6)
    caplog.set_level(logging.INFO, "tidegate.driver.subquery")
    _, lasted = transition(LAST.replace("ROWS 40", "ROWS 1000"), place)
    assert lasted == 6
    assert "what is left is handed over by its state" in caplog.text


@pytest.mark.parametrize(
    ("bytes_per_s", "batch", "wanted"),
    [
        (1, 2, "window: open windows end within 4 seconds, and "),
        (1, 1, "state: .* nobody knows how soon 40 tuples of an input come"),
        (10**9, 2, "state: .* open windows end within 4 seconds"),
    ],
)
def test_how_soon_windows_of_tuples_end_is_told_by_the_last_batch(
    bytes_per_s: int, batch: int, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten tuples come in a second, and 40 end the windows; loading the state takes long, or not.

    How long the first batch was, which began before all time, says nothing.
    """
    monkeypatch.setattr("tidegate.elastic.handover.BYTES_PER_S", bytes_per_s)
    loop = loop_of(
        plan_of(LAST),
        [memory(*ROWS, end=True)],
        (_MockFileSystem(), "ckpt"),
        batch_rows=20,
        switches={batch: 3},
    )
    for _ in range(batch + 1):
        assert loop.step() is not None
    (epoch,) = (e for e in loop.manifest.epochs if e["epoch"])
    assert re.match(wanted, f"{epoch['handover']}: {epoch['handover_why']}")
    loop.close()


@pytest.mark.parametrize("query", ["band join", "join on anything"])
def test_windows_are_finished_where_instances_are_a_grid(query: str, place: Path) -> None:
    plan = spread_out(plan_of(QUERIES[query]))
    wanted = plain(plan, place / "plain")
    sink, source = MemorySink(), memory(*ROWS, end=True)
    loop = loop_of(plan, [source], place / "grid", sink, batch_rows=BATCH_ROWS, handover=WINDOW)
    assert switched(loop, random.Random(query), 0.5) > 5
    loop.close()
    assert rows_of(sink) == wanted


LARGE = {
    "aggregate": "SELECT k, SUM(v) AS v FROM s [RANGE 6 SECONDS SLIDE 3 SECONDS] GROUP BY k",
    "band join": (
        "SELECT l.v AS l, r.v AS r FROM s AS l [RANGE 6 SECONDS] JOIN s AS r [RANGE 6 SECONDS] "
        "ON l.v BETWEEN r.v - 1 AND r.v + 1"
    ),
    "join by key": (
        "SELECT l.v AS l, r.v AS r FROM s AS l [RANGE 6 SECONDS] JOIN s AS r [RANGE 6 SECONDS] "
        "ON l.k = r.k"
    ),
}


@pytest.mark.parametrize("query", LARGE)
def test_on_a_remote_store_new_owners_load_their_buckets_and_no_others(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of segments by state recreation, each as if in a process of its own; else nothing."""
    monkeypatch.setattr("tidegate.state.segment.segment.WORTH_BYTES", 0)
    monkeypatch.setattr("tidegate.state.segment.piece.PIECE_BYTES", 1)
    monkeypatch.setattr("tidegate.state.segment.piece._END_BYTES", 4096)
    rows = [(t / 1000, f"k{t % 4001}", t) for t in range(12_000)]
    fetched: dict[int, int] = {}

    def alone(job: Job, instance: int, parcels: Any) -> Any:
        if handover == STATE:
            segment_module._remote.clear()
            forget_kept()
        before = fetched_bytes()
        found = run_instance(job, instance, parcels)
        fetched[instance] = fetched_bytes() - before
        return found

    monkeypatch.setattr(local, "run_instance", alone)
    outputs = []
    for handover in (STATE, WINDOW):
        fetched.clear()
        sink = MemorySink()
        loop = loop_of(
            plan_of(LARGE[query]),
            [memory(*rows, end=True)],
            (_MockFileSystem(), "ckpt"),
            sink,
            batch_rows=6_000,
            handover=handover,
            switches={1: 4},
        )
        assert loop.step() is not None
        stored = sum(s.bytes for s in loop.manifest.segments())
        fetched.clear()
        assert loop.step() is not None
        (epoch,) = (e for e in loop.manifest.epochs if e["epoch"])
        assert epoch["handover"] == handover
        moved = sum(fetched[instance] for instance in (2, 3))  # the others only have fewer now
        assert epoch["bytes_moved"] == moved
        drain(loop)
        loop.close()
        outputs.append(rows_of(sink))
        if handover == STATE:
            assert set(fetched) == {0, 1, 2, 3}
            assert all(size < 0.4 * stored for size in fetched.values())
            assert sum(fetched.values()) < 1.4 * stored
        else:
            assert sum(fetched.values()) == 0
    assert outputs[0] == outputs[1]
