"""Large segments on a remote store are read in pieces, where that is fewer bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.state.conftest import remember
from tidegate.errors import StateError
from tidegate.state.segment.piece import WORTH_BYTES, fetched_bytes
from tidegate.state.segment.segment import (
    Segment,
    read_segment,
    rows_by_bucket,
    verify_segment,
    write_segment,
)
from tidegate.state.store import Store

BUCKETS, ROWS = 16, 20_000
FS = _MockFileSystem


@pytest.fixture
def store() -> Store:
    return Store.open((FS(), "some/ckpt"))


def written(store: Store, rows: int = ROWS) -> tuple[Segment, pa.Table]:
    """A segment with rows of numbers, text and nulls in each bucket, and its table."""
    chance = np.random.default_rng(7)
    number = np.arange(BUCKETS * rows)
    table = pa.table(
        {
            "bucket": pa.array((number // rows).astype(np.int32)),
            "pane": pa.array(number % rows),
            "v": pa.array(chance.random(len(number)), mask=number % 7 == 0),
            "k": pa.array([f"key {n % 97}" for n in number]),
        }
    )
    return write_segment(store, "large", table, order="pane", tag=0), table


def test_a_few_buckets_of_a_large_segment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, table = written(store)
    remember(monkeypatch, 2**28)  # another process, which has not written it
    before = fetched_bytes()
    for wanted in ([3], [9, 10], [0, 15]):
        rows = read_segment(store, segment, wanted)
        assert rows.equals(table.filter(pa.array(np.isin(table["bucket"], wanted))))
    taken = fetched_bytes() - before
    assert 5 / 16 < taken / segment.bytes < 0.75
    some = read_segment(store, segment, [3], ["v"])
    assert some.column_names == ["v"]
    assert read_segment(store, segment, [3, 99]).num_rows == ROWS


def scattered(store: Store) -> tuple[Segment, pa.Table]:
    """A segment of as many rows, whose buckets are all over it."""
    _, table = written(store)
    order = np.random.default_rng(8).permutation(table.num_rows)
    table = table.take(pa.array(order)).combine_chunks()
    return write_segment(store, "scattered", table, order="pane", tag=0, grouped=False), table


def test_buckets_of_rows_that_were_written_in_another_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment, table = scattered(store)
    assert read_segment(store, segment, [2]).num_rows == ROWS  # from what the writer has
    for wanted in ([3], [9, 10, 99]):
        remember(monkeypatch, 2**28)
        before = fetched_bytes()
        rows = read_segment(store, segment, wanted)
        assert rows.equals(table.filter(pa.array(np.isin(table["bucket"], wanted))))
        mine = len({*wanted} - {99}) / BUCKETS
        assert mine < (fetched_bytes() - before) / segment.bytes < mine + 0.08
        before = fetched_bytes()
        assert read_segment(store, segment, wanted, ["v"]).column("v").equals(rows.column("v"))
        assert fetched_bytes() == before
    remember(monkeypatch, 2**28)
    assert read_segment(store, segment).equals(table, check_metadata=True)


def test_a_copy_of_them_on_a_local_disk(store: Store, tmp_path: Path) -> None:
    segment, table = scattered(store)
    local = Store.open(tmp_path)
    local.write(segment.path, store.read(segment.path))
    assert read_segment(local, segment).equals(table)
    some = read_segment(local, segment, [3, 4], ["pane"], more=("k", "none"))
    kept = table.filter(pa.array(np.isin(table["bucket"], [3, 4])))
    assert some.equals(kept.select(["pane", "k"]))
    counts = rows_by_bucket(local, segment)
    assert counts is not None
    assert counts.tolist() == [ROWS] * BUCKETS
    verify_segment(local, segment)


def test_pieces_are_fetched_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, _ = written(store)
    remember(monkeypatch, 2**28)
    read_segment(store, segment, [4])
    before = fetched_bytes()
    read_segment(store, segment, [4])
    assert fetched_bytes() == before


def test_who_wrote_a_segment_does_not_fetch_it(store: Store) -> None:
    segment, table = written(store)
    before = fetched_bytes()
    assert read_segment(store, segment, [2]).num_rows == ROWS
    assert read_segment(store, segment).equals(table)
    assert fetched_bytes() == before


def test_a_small_segment_is_read_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, _ = written(store, rows=200)
    assert segment.bytes < WORTH_BYTES
    remember(monkeypatch, 2**28)
    before = fetched_bytes()
    assert read_segment(store, segment, [3]).num_rows == 200
    assert fetched_bytes() - before == segment.bytes


def test_damage_in_a_piece_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, table = written(store)
    whole = bytearray(store.files.buffer(segment.path).to_pybytes())
    at = whole.index(table["v"].chunk(0)[3 * ROWS + 5 :][:4].to_numpy(False).tobytes())
    whole[at] ^= 1
    with store.files.create(segment.path) as out:
        out.write(bytes(whole))
    remember(monkeypatch, 2**28)
    assert read_segment(store, segment, [9]).num_rows == ROWS
    with pytest.raises(StateError, match="must have the rows it was written with; got others"):
        read_segment(store, segment, [3])
