"""Rows of an instance that go to a file where they are many: the same rows, and nothing left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.operate import spill
from tidegate.operate.spill import Spill, spilling
from tidegate.state.store import Store


def rows(first: int, count: int) -> pa.Table:
    numbers = pa.array(range(first, first + count), pa.int64())
    return pa.table({"n": numbers, "t": pa.array(["x" * 9] * count, pa.string())})


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.sampled_from([0, 100, 10**6]))
def test_the_rows_are_those_given_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("spill")
    given_rows = [rows(10 * i, count) for i, count in enumerate(counts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "SPILL_BYTES", limit)
        made = Spill(Store.open(folder), "00000007-rows")
        with spilling() as spilled:
            for each in given_rows:
                made.add(each.slice(0))
            table = made.table()
    size = sum(each.nbytes for each in given_rows)
    assert spilled == ([size] if size > limit else []), "what was written is counted, once"
    assert table.equals(pa.concat_tables(given_rows))
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def test_many_rows_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", 200_000)
    made = Spill(Store.open(tmp_path), "00000007-rows")
    before = pa.total_allocated_bytes()
    held = []
    for i in range(30):
        made.add(pa.table({"n": pa.array(range(i * 10_000, (i + 1) * 10_000))}))
        held.append(pa.total_allocated_bytes() - before)
    assert max(held) < 10 * 80_000
    table = made.table()
    assert pa.total_allocated_bytes() - before < 10 * 80_000
    assert table["n"].to_numpy().tolist() == list(range(300_000))


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", 0)
    store = Store.open(tmp_path)
    store.files.make("staged")
    monkeypatch.setattr(spill, "temporary", lambda name: f"{name}/missing/file")
    with pytest.raises(StateError, match="missing/file: must be writable; got"):
        Spill(store, "00000007-rows").add(rows(0, 3))


def test_what_is_dropped_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SPILL_BYTES", 0)
    made = Spill(Store.open(tmp_path), "00000007-rows")
    made.add(rows(0, 3))
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1
    made.drop()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
