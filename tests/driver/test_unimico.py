"""The three queries of UniMiCo (dissertation, chapter 4) migrate: no state moves, no row changes.

Q1 joins two streams over 10 seconds, Q2 sums the last five tuples of a stream, Q3 the last five
pairs of the join. Tuple windows slide by one tuple there; others are tried as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import drain, loop_of, memory, plan_of, rows_of
from tests.driver.test_handover import forgetful
from tests.property.course import IN_MEMORY
from tests.property.test_determinism import share
from tidegate.driver.loop import Loop
from tidegate.elastic.handover import STATE, WINDOW
from tidegate.elastic.request import Move, Request, Switch
from tidegate.operate.tuple_window import state as tuple_state
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.tenure import migration_of
from tidegate.sink.memory import MemorySink
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment

PAIRS = (
    "SELECT a.k AS k, a.v AS m FROM s AS a [RANGE 10 SECONDS] "
    "JOIN s AS b [RANGE 10 SECONDS] ON a.k = b.k"
)
Q1 = PAIRS
Q2 = "SELECT SUM(v) AS total FROM s [ROWS 5 SLIDE 1]"
Q3 = f"SELECT SUM(m) AS total FROM ({PAIRS}) [ROWS 5 SLIDE 1]"
QUERIES = {"Q1": Q1, "Q2": Q2, "Q3": Q3}
ROWS = [(t / 2, f"k{t * t % 7}", (t * 37) % 101) for t in range(160)]
SEGMENT = Segment("x", 1, 1, 0, BucketSet.of([0]), 0, 0, 1)
EVERY_BUCKET = tuple(range(64))


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        yield Path(folder)


def started(sql: str, place: Path, sink: MemorySink, rows: Sequence[Any], **options: Any) -> Loop:
    return loop_of(plan_of(sql), [memory(*rows, end=True)], place, sink, buckets=64, **options)


def plain(sql: str, place: Path, rows: Sequence[Any] = ROWS) -> list[tuple[Any, ...]]:
    """What the query gives in one batch, without a switch."""
    sink = MemorySink()
    loop = started(sql, place, sink, rows)
    drain(loop)
    loop.close()
    return rows_of(sink)


def in_turn(rows: Sequence[Any], n: int, slide: int) -> list[tuple[float, float, int]]:
    """Sums of windows of tuples as the definition has them: start, end, sum."""
    windows = (rows[i : i + n] for i in range(0, len(rows) - n + 1, slide))
    return [(w[0][0], w[-1][0], sum(r[2] for r in w)) for w in windows]


@pytest.mark.parametrize("query", QUERIES)
def test_a_migration_moves_no_state_and_changes_no_row(query: str, place: Path) -> None:
    wanted, sink = plain(QUERIES[query], place / "plain"), MemorySink()
    options = {"batch_rows": 3, "instances": 2, "handover": WINDOW}
    loop = started(QUERIES[query], place / "switched", sink, ROWS, **options)
    while loop.step() is not None:
        if loop.manifest.batch == 20:
            loop.controls.ask(Request(Move(EVERY_BUCKET, 1)))
    loop.close()
    assert len(wanted) > 150
    assert rows_of(sink) == wanted
    moved = [e for e in loop.manifest.epochs if e.get("handover") == WINDOW]
    assert len(moved) == (2 if query == "Q3" else 1)
    assert all(e["bytes_moved"] == 0 and e["completed"] > e["applied"] for e in moved)


def test_former_owner_finishes_the_windows_that_began_and_the_new_one_reads_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of batches of 3 tuples, 30 have come after ten, less the newest: 4 more fill five."""
    read: list[tuple[int, int]] = []
    opened = tuple_state._opened

    def counted(work: Any, spec: Any, segments: list[Segment], buckets: Any) -> Any:
        read.append((work.instance, sum(s.rows for s in segments)))
        return opened(work, spec, segments, buckets)

    sink = MemorySink()
    options = {"batch_rows": 3, "instances": 2, "handover": WINDOW}
    loop = started(Q2, place, sink, ROWS, **options)
    for _ in range(10):
        assert loop.step() is not None
    monkeypatch.setattr(tuple_state, "_opened", counted)
    loop.controls.ask(Request(Move((0,), 1)))
    assert loop.step() is not None
    epoch = dict(loop.manifest.epochs[-1])
    assert epoch["over_tuples"] == {"tuples": 29 - 1 + 5}
    assert [rows for instance, rows in read if instance == 1] == [0]
    assert "completed" not in epoch
    assert loop.step() is not None
    assert "completed" in loop.manifest.epochs[-1]
    loop.close()


@pytest.mark.parametrize(
    ("slide", "came", "until", "discarded"),
    [(2, 5, 4, 1), (2, 6, 4, 0), (1, 7, 6, 0), (3, 7, 6, 2)],
)
def test_the_migration_timestamp_is_that_of_equation_4_2(
    slide: int, came: int, until: int, discarded: int
) -> None:
    """The last window of the former owner begins delta tuples before the next one to come.

    The new owner leaves out slide - delta tuples.
    """
    spec = TupleSpec(3, slide, (), (), ())
    found = migration_of(spec, 10, {"tuples": [SEGMENT]}, {"tuples": came})
    assert found is not None
    (position,) = found.positions
    assert (position.until, position.over) == (came, until + 3)
    assert -(-came // slide) * slide == came + discarded


def test_a_stream_without_an_open_window_has_nothing_to_finish() -> None:
    spec = TupleSpec(3, 3, (), (), ())
    assert migration_of(spec, 10, {"tuples": [SEGMENT]}, {"tuples": 6}) is None
    assert migration_of(spec, 10, {}, {"tuples": 5}) is None


@share(25, least=25)
@given(st.data())
def test_windows_of_tuples_do_not_depend_on_migrations(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9), "rows")
    slide = data.draw(st.integers(1, n), "slide")
    sql = f"SELECT SUM(v) AS total FROM s [ROWS {n} SLIDE {slide}]"
    rows = [(t // 2, None, (t * 37) % 101) for t in range(data.draw(st.integers(20, 60), "tuples"))]
    size = data.draw(st.integers(1, 7), "batch")
    steps = data.draw(st.lists(st.sampled_from("0123 r"), min_size=8, max_size=25), "steps")
    forget = data.draw(st.sampled_from([0.0, 0.5]), "forget")
    handover = data.draw(st.sampled_from([WINDOW, WINDOW, STATE]), "handover")
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as place:
        sink, source = MemorySink(), [memory(*rows, end=True)]
        options = {"batch_rows": size, "instances": 4, "handover": handover, "buckets": 8}
        loop = loop_of(plan_of(sql), source, Path(place), sink, **options)
        with forgetful(forget):
            for step in steps:
                if loop.manifest.finished:
                    break
                if step == "r":
                    loop.close()
                    loop = loop_of(plan_of(sql), source, Path(place), sink, **options)
                elif step != " ":
                    loop.controls.ask(Request(Move((0,), int(step))))
                loop.step()
            drain(loop)
        loop.close()
    assert rows_of(sink) == in_turn(rows, n, slide)


def test_a_mapping_at_the_start_is_epoch_0_and_switches_go_from_there(place: Path) -> None:
    """With all buckets at instance 1, going down to one moves that of a stream without groups."""
    wanted, sink = plain(Q2, place / "plain"), MemorySink()
    options: dict[str, Any] = {
        "batch_rows": 9,
        "handover": WINDOW,
        "switches": {7: 1},
        "instances": None,
    }
    all_at_one = Switch((1,) * 64, 2)
    loop = started(Q2, place / "mapped", sink, ROWS, mapping=all_at_one, **options)
    assert loop.step() is not None
    assert loop.manifest.mappings["aggregate"]["owners"] == [1] * 64
    assert loop.manifest.epochs[0]["instances"] == 2
    drain(loop)
    loop.close()
    assert rows_of(sink) == wanted
    assert loop.manifest.epochs[-1]["handover"] == WINDOW


def test_a_mapping_is_asked_for_again_when_a_run_goes_on(place: Path) -> None:
    source, sink = [memory(*ROWS, end=True)], MemorySink()
    for mapping in (Switch((1, 0), 2), Switch((0, 1), 2), None):
        loop = loop_of(
            plan_of(Q2),
            source,
            place,
            sink,
            buckets=2,
            batch_rows=9,
            mapping=mapping,
            instances=None,
        )
        assert loop.step() is not None
        assert loop.step() is not None
        loop.close()
    assert loop.manifest.mappings["aggregate"]["owners"] == [0, 1]
    assert [e.get("by") for e in loop.manifest.epochs] == [None, "--mapping"]
