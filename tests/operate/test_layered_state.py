"""State in layers: what is found in one, what a merge leaves, and that it does not grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, PASSED, plan_of
from tidegate.batch import MAX_US
from tidegate.driver.compactor import Compactor
from tidegate.operate.aggregate.state import PANES, PaneKeeper
from tidegate.operate.keeper import Keeper
from tidegate.operate.layered_state import HIDES, distinct, found
from tidegate.operate.process import entry, segment_rows
from tidegate.operate.process.entry import (
    ENTRY,
    HEAD,
    EntryHorizon,
    EntryKeeper,
    StateRow,
    table_of,
)
from tidegate.operate.process.key import StoredEntry, span_of
from tidegate.operate.process.segment_rows import StoredState
from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper
from tidegate.state.segment.compaction import FOREVER, choose
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30)


def columns(rows: Sequence[tuple[int, int]]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    return [np.array([row[i] for row in rows], np.int64) for i in (0, 1)]


@given(pairs, pairs)
def test_rows_are_found_by_bucket_and_order(
    rows: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    rows.sort()
    bucket, order = columns(rows)
    table = pa.table({"bucket": bucket, "o": order, "n": np.arange(len(rows))})
    asked = distinct(*columns(wanted))
    assert list(zip(*(c.tolist() for c in asked))) == sorted(set(wanted))
    numbers = found(table, "o", *asked)["n"].to_pylist()
    assert numbers == [n for n, row in enumerate(rows) if row in wanted]


def segment(name: str, high: int = 5) -> Segment:
    return Segment(name, 3, 100, 0, (0,), 0, high, 9)


def test_only_the_oldest_layer_may_lose_what_hides_older_rows() -> None:
    old, new = segment("old", HIDES | 2), segment("new", HIDES | 2)
    horizon = EntryKeeper().horizon(0, 0, [old, new])
    assert horizon == EntryHorizon(ENTRY, "old", frontier_us=0)
    rows = pa.table({ENTRY: [1, 2, HIDES | 2]})
    assert horizon.live(rows, old).tolist() == [True, True, False]
    assert horizon.live(rows, new).tolist() == [True, True, True]
    assert [horizon.whole(s) for s in (old, new, segment("old"))] == [False, True, True]
    assert not horizon.passed(old)
    timed = rows.append_column("pending_us", pa.array([7, 8, 7]))
    later = EntryKeeper().horizon(7, 0, [old, new])
    assert later.live(timed, new).tolist() == [False, True, False], "expired at 7"
    heads = pa.table({ENTRY: [HEAD], "pending_us": [3]})
    assert later.live(heads, new).tolist() == [True], "a timer, which is not a time to live"
    assert EntryKeeper().horizon(0, 0).oldest is None


def test_a_large_group_does_not_wait_for_its_rows_to_die() -> None:
    large = [Segment(f"{i}", 2_000_000, 100, 0, (0,), 0, HIDES, 0) for i in range(4)]
    rows = [s.rows for s in large]
    assert choose(large, rows, cell=2**40) == ()
    assert choose(large, rows, cell=FOREVER) == (tuple(large),)
    small = [Segment(f"s{i}", 10, 100, 0, (0,), 0, 0, 0) for i in range(4)]
    both = [*large, *small]
    assert choose(both, [s.rows for s in both], cell=FOREVER) == (tuple(small),), "first the small"


def test_every_operator_has_its_keepers() -> None:
    (tuples,) = plan_of("SELECT COUNT(*) AS n FROM s [ROWS 5]").subqueries
    assert isinstance(tuples.operator, TupleAggregate)
    assert tuples.operator.state.keepers == {TUPLES: TupleKeeper(tuples.operator.spec)}
    (panes,) = plan_of(COUNTS).subqueries[0].operator.state.keepers.items()
    assert panes[0] == PANES
    assert isinstance(panes[1], PaneKeeper)
    assert plan_of(PASSED).subqueries[0].operator.state.keepers == {}


# --- compaction --------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path)
    made.create({})
    return made


def compacted(
    store: Store, keeper: Keeper, segments: Sequence[Segment], batch: int, frontier_us: int = 0
) -> list[Segment]:
    compactor = Compactor(store, keeper)
    compactor.consider(batch, segments, frontier_us, owners=(0, 0, 0, 0))
    compactor.wait()
    made = list(compactor.apply(segments))
    compactor.settle(made)
    compactor.close()
    return made


@pytest.fixture(autouse=True)
def few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some names have the same number."""
    first = span_of(b"x:")[0]
    monkeypatch.setattr(entry, "entry_of", lambda name: first + sum(name) % 50)
    monkeypatch.setattr(segment_rows, "entry_of", entry.entry_of)


def put(
    store: Store, name: str, changes: dict[int, dict[str, int | None]], until_us: int = MAX_US
) -> Segment:
    """A layer of entries by bucket and key; None for one that is gone."""
    rows = [
        (bucket, [_row(key, value, until_us) for key, value in changes[bucket].items()])
        for bucket in sorted(changes)
    ]
    layer = table_of(rows)
    return write_segment(store, name, layer, ENTRY, EntryKeeper().tag_of(layer))


def _row(key: str, value: int | None, until_us: int) -> StateRow:
    found = StoredEntry(0, until_us, b"%d" % (value or 0))
    make = StateRow.gone if value is None else StateRow.of
    return make(b"x:" + key.encode(), found)


def held(store: Store, segments: Sequence[Segment]) -> dict[int, dict[str, int]]:
    """The entries of every bucket, as a reader of the state finds them."""
    layers = [read_segment(store, one) for one in segments]
    heads = table_of([(b, [StateRow.head(0, b"")]) for b in range(4)])
    state = StoredState([heads, *layers], range(4))
    found = {}
    for bucket in range(4):
        there = state.bucket(bucket)
        rows = there.load(b"x:")
        assert all(there.find(name) == row for name, row in rows.items())
        found[bucket] = {name[2:].decode(): int(row.data) for name, row in rows.items()}
    return {bucket: entries for bucket, entries in found.items() if entries}


def test_a_merge_leaves_the_newest_row_of_each_entry(store: Store) -> None:
    changes: list[dict[int, dict[str, int | None]]] = [
        {0: {"a": 1, "b": 2}, 1: {"a": 3}},
        {0: {"a": 4}, 2: {"c": 5}},
        {0: {"b": None}, 1: {"a": None, "d": 6}},
        {0: {"b": 7}, 1: {"d": None}},
    ]
    made = [put(store, f"{i:08d}-0000", change) for i, change in enumerate(changes)]
    assert held(store, made) == {0: {"a": 4, "b": 7}, 2: {"c": 5}}
    after = compacted(store, EntryKeeper(), made, 9)
    assert held(store, after) == held(store, made)
    (one,) = after
    assert one.rows == 5, "what hides older rows is still there"
    last = compacted(store, EntryKeeper(), after, 10)
    assert held(store, last) == held(store, made)
    assert [s.rows for s in last] == [3], "beneath the oldest layer there is nothing to hide"
    assert compacted(store, EntryKeeper(), last, 11) == last


@pytest.mark.parametrize("lives", [1, 5, 40])
def test_entries_that_come_and_go_leave_nothing(store: Store, lives: int) -> None:
    """Each batch adds new keys and removes those of some batches ago: the state stays small."""
    made: list[Segment] = []
    model: dict[str, int] = {}
    most_rows, most_segments, batches, new = 0, 0, 250, 10
    for batch in range(batches):
        changes: dict[str, int | None] = {f"{batch}-{i}": batch for i in range(new)}
        changes |= {f"{batch - lives}-{i}": None for i in range(new) if batch >= lives}
        model = {k: v for k, v in {**model, **changes}.items() if v is not None}
        made.append(put(store, f"{batch:08d}-0000", {batch % 4: {}, 0: changes}))
        made = compacted(store, EntryKeeper(), made, batch)
        most_rows = max(most_rows, sum(s.rows for s in made))
        most_segments = max(most_segments, len(made))
        if batch % 50 == 49:
            assert held(store, made) == {0: model}
    assert len(model) == lives * new
    assert most_rows <= 10 * (lives + 1) * new + 20 * new
    assert most_segments <= 20


@pytest.mark.parametrize("lives", [1, 5, 40])
def test_entries_that_expire_leave_nothing(store: Store, lives: int) -> None:
    """Each batch sets new keys, and some of another batch again: the state stays small."""
    made: list[Segment] = []
    until: dict[str, int] = {}
    most_rows, batches, new = 0, 250, 10
    for batch in range(batches):
        changes: dict[str, int | None] = {f"{batch}-{i}": batch for i in range(new)}
        changes |= {f"{batch // 2}-{i}": batch for i in range(2)}
        until |= dict.fromkeys(changes, batch + lives)
        made.append(put(store, f"{batch:08d}-0000", {batch % 4: {}, 0: changes}, batch + lives))
        made = compacted(store, EntryKeeper(), made, batch, frontier_us=batch)
        most_rows = max(most_rows, sum(s.rows for s in made))
        if batch % 50 == 49:
            there = held(store, made)[0]
            live = {key for key, at in until.items() if at > batch}
            assert live <= set(there), "what has not expired is there"
            assert len(there) <= 10 * (lives + 1) * new + 20 * new
    assert most_rows <= 10 * (lives + 1) * new + 20 * new


def test_a_large_layer_that_has_expired_goes_though_little_follows(store: Store) -> None:
    """Keys that never come again: nothing as large comes that their layer could be merged with."""
    many: dict[str, int | None] = {f"old-{i}": 0 for i in range(1000)}
    made = [put(store, "00000000-0000", {0: many}, until_us=10)]
    for batch in range(1, 20):
        made.append(put(store, f"{batch:08d}-0000", {0: {f"{batch}": batch}}, MAX_US))
        made = compacted(store, EntryKeeper(), made, batch, frontier_us=batch)
        assert (sum(s.rows for s in made) > 1000) is (batch < 10)
    assert set(held(store, made)[0]) == {f"{batch}" for batch in range(1, 20)}


def test_a_layer_is_rewritten_when_a_fifth_has_expired(store: Store) -> None:
    rows = [_row(f"{i}", i, until_us=i) for i in range(10)]
    layer = table_of([(0, [StateRow.head(1, b""), *rows[:9]])])
    keeper = EntryKeeper()
    assert keeper.tag_of(layer) == 2, "3 of 10 are gone then; a timer is no time to live"
    one = write_segment(store, "00000000-0000", layer, ENTRY, keeper.tag_of(layer))
    assert [s.rows for s in compacted(store, keeper, [one], 1, frontier_us=1)] == [10]
    after = compacted(store, keeper, [one], 1, frontier_us=2)
    assert [(s.rows, s.tag) for s in after] == [(7, 4)]
