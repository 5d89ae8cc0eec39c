"""Open panes in memory against a plain list of rows, over any batches and any frontier."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import ints
from tidegate.operate.aggregate.pane.open_panes import _MOST_PARTS, OpenPanes, split

Rows = list[tuple[int, int]]

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=5)


SCHEMA = pa.schema([("pane", pa.int64()), ("n", pa.int64())])


def table(rows: Rows) -> pa.Table:
    return pa.table({"pane": [r[0] for r in rows], "n": [r[1] for r in rows]}, SCHEMA)


def lines(tables: list[pa.Table]) -> Rows:
    return [(r["pane"], r["n"]) for t in tables for r in t.to_pylist()]


@given(
    st.lists(ROWS, max_size=12), st.integers(-1, 11), st.integers(-1, 11), st.sampled_from([1, 8])
)
def test_panes_are_divided_as_a_list_is(
    batches: list[Rows], sealed: int, needed: int, times: int
) -> None:
    """Rows keep the order of their batches, however many those are."""
    held = OpenPanes()
    for rows in batches * times:
        held = held.with_waiting(table(rows)).with_complete(table(rows))
    plain = [row for rows in batches * times for row in rows]
    assert len(held.waiting) <= _MOST_PARTS
    assert len(held.complete) <= _MOST_PARTS
    assert held.nbytes == 2 * 16 * len(plain)
    due, left = held.due(sealed)
    assert lines(due) == [row for row in plain if row[0] < sealed]
    assert lines([p.rows for p in left.waiting]) == [row for row in plain if row[0] >= sealed]
    lasting = left.needed(needed)
    assert lasting.waiting == left.waiting
    assert lines([p.rows for p in lasting.complete]) == [row for row in plain if row[0] >= needed]
    for part in (*lasting.complete, *lasting.waiting):
        assert (part.low, part.high) == (min(ints(part.rows, "pane")), max(ints(part.rows, "pane")))
    below, above = split(table(plain), sealed)
    assert lines([below, above]) == [*lines(due), *lines([p.rows for p in left.waiting])]


def test_what_is_held_has_memory_of_its_own() -> None:
    """What a map task left is deleted after its batch."""
    given = table([(1, 2), (3, 4)])
    some = given.slice(1)
    (waits,), (complete,) = (
        OpenPanes().with_waiting(some).waiting,
        OpenPanes().with_complete(some).complete,
    )
    for part in (waits, complete):
        theirs, ours = (t.column("n").chunk(0).buffers()[1] for t in (given, part.rows))
        assert (ours.address, ours.size) != (theirs.address, theirs.size)
        assert ours.size < 16
