"""Rows between subqueries: spans of time, in the order of their operator, wherever they are cut."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, plan_of, table
from tidegate.batch import MAX_US, MIN_US, to_bytes
from tidegate.collect.order import TotalOrder
from tidegate.collect.window import WindowOrder
from tidegate.execute import delivery as edge
from tidegate.execute.delivery import Delivery, EdgeReader
from tidegate.execute.job import Outcome, Piece
from tidegate.operate.port import Port
from tidegate.schema import TIME

(SORTED,) = plan_of(PASSED).subqueries[0].ports
(WINDOWS,) = plan_of(COUNTS).subqueries[0].ports
SECOND_US = 1_000_000
ORDER = ("window_end", "k")


def windows(*rows: tuple[int, str, int]) -> pa.Table:
    """Rows of windows that end at a second, as an instance gives them, with the key hidden."""
    ends = pa.array([r[0] * SECOND_US for r in rows], pa.int64()).cast(TIME)
    keys = pa.array([r[1] for r in rows], pa.string())
    values = pa.array([r[2] for r in rows], pa.int64())
    named = {"window_start": ends, "window_end": ends, "k": keys, "v": values, "n": values}
    return pa.table({**named, "~k000": keys})


def delivered(port: Port, *tables: pa.Table) -> Delivery:
    kind = WindowOrder() if port.time == "window_end" else TotalOrder()
    return Delivery("before", kind, port, tuple(Piece.of(port, t) for t in tables))


def values(reader: EdgeReader) -> list[int]:
    found: list[int] = reader.read(["v"]).table.column("v").to_pylist()
    return found


def test_no_rows_have_no_readers() -> None:
    assert delivered(SORTED, table(), table()).readers() == []
    empty = delivered(SORTED, table())
    assert (empty.rows, empty.low_us, empty.high_us) == (0, MAX_US, MIN_US)


def test_a_delivery_knows_its_extent_from_its_pieces() -> None:
    both = delivered(SORTED, table((5, "a", 1), (9, "a", 2)), table(), table((3, "b", 3)))
    assert (both.rows, both.low_us, both.high_us) == (3, 3_000_000, 9_000_000)
    ends = delivered(WINDOWS, windows((10, "a", 1), (20, "a", 2)))
    assert (ends.low_us, ends.high_us) == (9_999_999, 19_999_999)


def test_few_rows_are_one_span_without_bounds() -> None:
    (reader,) = delivered(SORTED, table((5, "a", 1)), table((9, "a", 2))).readers()
    assert (reader.low_us, reader.high_us) == (MIN_US, MAX_US)
    assert (reader.start, reader.stop) == (0, 2)
    assert values(reader) == [1, 2]


def test_rows_are_numbered_in_the_order_of_the_edge() -> None:
    one = windows((10, "b", 2), (20, "b", 5))
    two = windows((10, "a", 1), (10, "c", 3), (20, "a", 4))
    (reader,) = delivered(WINDOWS, one, two).readers()
    rows = reader.read(["k", "v", "window_end"])
    assert rows.table.column_names == ["k", "v", "window_end"]
    assert rows.table.column("v").to_pylist() == [1, 2, 3, 4, 5]
    assert rows.seq.tolist() == [0, 1, 2, 3, 4]


def test_spans_divide_the_time_evenly_and_count_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "SPAN_ROWS", 2)
    given = delivered(SORTED, table(*[(t, "a", t) for t in (0, 1, 8, 9)]), table((5, "b", 5)))
    readers = given.readers()
    bounds = [(r.low_us, r.high_us) for r in readers]
    first, second = 3_000_000, 6_000_000
    assert bounds == [(MIN_US, first), (first, second), (second, MAX_US)]
    assert [values(r) for r in readers] == [[0, 1], [5], [8, 9]]
    assert [(r.start, r.stop) for r in readers] == [(0, 2), (2, 4), (4, 5)]


def test_the_last_instant_of_a_window_decides_its_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "SPAN_ROWS", 1)
    early, late = delivered(WINDOWS, windows((10, "a", 1), (20, "a", 2))).readers()
    assert (values(early), values(late)) == ([1], [2])
    assert early.high_us == late.low_us == 9_999_999 + 5_000_000
    shifted = replace(early, high_us=10_000_000)
    assert values(shifted) == [1], "it is before its end"
    assert values(replace(early, high_us=9_999_999)) == []


def test_a_limit_needs_all_rows_of_a_window_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "SPAN_ROWS", 1)
    limited = replace(WINDOWS, limit=2)
    parts = windows((10, "b", 2), (10, "d", 4), (20, "b", 6)), windows((10, "a", 1), (10, "c", 3))
    (reader,) = delivered(limited, *parts).readers()
    assert (reader.low_us, reader.high_us) == (MIN_US, MAX_US)
    assert values(reader) == [1, 2, 6]


def test_readers_take_the_pieces_of_their_port(tmp_path: Path) -> None:
    kept = table((1, "a", 1))
    path = tmp_path / "piece"
    path.write_bytes(to_bytes(table((2, "a", 2))))
    left = Piece(1, 2_000_000, 2_000_000, None, str(path))
    other = Piece.of(SORTED, table((7, "z", 7)))
    outcomes = [Outcome(0, (other, Piece.of(SORTED, kept))), Outcome(1, (other, left))]
    delivery = Delivery.of("job", TotalOrder(), 1, SORTED, outcomes)
    assert (delivery.source, delivery.order) == ("job", TotalOrder())
    (reader,) = delivery.readers()
    assert values(pickle.loads(pickle.dumps(reader))) == [1, 2]


times = st.lists(st.integers(0, 12), max_size=12).map(sorted)


@given(st.lists(times, min_size=1, max_size=3), st.integers(1, 5))
def test_spans_put_together_are_the_whole_edge(parts: list[list[int]], span_rows: int) -> None:
    """Whatever the instances: no row twice or lost, one order, no instant in two spans."""
    tables = [
        windows(*[(t, f"{i}-{n:02d}", t * 1000 + n) for n, t in enumerate(part)])
        for i, part in enumerate(parts)
    ]
    delivery = delivered(WINDOWS, *tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge, "SPAN_ROWS", span_rows)
        readers = delivery.readers()
    read = [r.read(["window_end", "k"]).table for r in readers]
    together = [(w, k) for t in read for w, k in zip(*(c.to_pylist() for c in t.columns))]
    every = [row for t in tables for row in zip(*(t.column(c).to_pylist() for c in ORDER))]
    assert together == sorted(every)
    instants = [set(t.column("window_end").to_pylist()) for t in read]
    assert sum(map(len, instants)) == len(set().union(*instants))
    assert sum(r.stop - r.start for r in readers) <= len(every)


@given(st.lists(times, min_size=2, max_size=3), st.integers(1, 5))
def test_where_spans_end_does_not_depend_on_instances(
    parts: list[list[int]], span_rows: int
) -> None:
    rows = sorted((t, f"{i}-{n:02d}", 0) for i, p in enumerate(parts) for n, t in enumerate(p))
    spread = [windows(*[r for r in rows if r[1].startswith(str(i))]) for i in range(len(parts))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge, "SPAN_ROWS", span_rows)
        cuts = [
            [(r.low_us, r.high_us, r.start, r.stop) for r in delivered(WINDOWS, *t).readers()]
            for t in ([windows(*rows)], spread)
        ]
    assert cuts[0] == cuts[1]
