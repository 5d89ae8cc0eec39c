"""Segments: what is written is what is read, and damage never passes for data."""

from __future__ import annotations

import os
import zlib
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import _MockFileSystem

from tests.state.conftest import remember
from tests.state.rows import rows
from tidegate.errors import CheckpointError, StateError
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import file as segment_file
from tidegate.state.segment import segment as segment_module
from tidegate.state.segment.segment import Segment, read_segment, verify_segment, write_segment
from tidegate.state.store import Store

SCHEMA = pa.schema(
    {
        "bucket": pa.int32(),
        "pane": pa.int64(),
        "k": pa.string(),
        "values": pa.list_(pa.float64()),
        "names": pa.list_(pa.string()),
        "flag": pa.bool_(),
        "sum": pa.decimal128(20, 3),
        "day": pa.date32(),
        "raw": pa.binary(),
        "n": pa.int16(),
    }
)


def _optional(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


ROW = st.fixed_dictionaries(
    {
        "bucket": st.integers(0, 5),
        "pane": st.integers(-3, 3),
        "k": _optional(st.text(max_size=4)),
        "values": _optional(st.lists(_optional(st.floats(allow_nan=False)), max_size=3)),
        "names": _optional(st.lists(_optional(st.text(max_size=3)), max_size=2)),
        "flag": _optional(st.booleans()),
        "sum": _optional(st.decimals(-(10**9), 10**9, places=3)),
        "day": _optional(st.dates()),
        "raw": _optional(st.binary(max_size=3)),
        "n": _optional(st.integers(-(2**15), 2**15 - 1)),
    }
)
ROWS = st.lists(ROW, max_size=20).map(lambda rows: sorted(rows, key=_place))


def _place(row: dict[str, object]) -> tuple[object, object]:
    return row["bucket"], row["pane"]


def _memory_store() -> Store:
    return Store.open((_MockFileSystem(), "ckpt"))


@given(records=ROWS, wanted=st.lists(st.integers(0, 7), unique=True))
def test_every_type_comes_back_by_bucket(records: list[dict[str, Any]], wanted: list[int]) -> None:
    store = _memory_store()
    table = pa.Table.from_pylist(records, SCHEMA)
    segment = write_segment(store, "s", table, "pane", 7)
    assert list(segment.buckets) == sorted({row["bucket"] for row in records})
    assert (segment.rows, segment.tag) == (len(records), 7)
    panes = [row["pane"] for row in records] or [0, -1]
    assert (segment.low, segment.high) == ((min(panes), max(panes)) if records else (0, -1))
    assert read_segment(store, segment).equals(table, check_metadata=True)
    some = read_segment(store, segment, wanted)
    assert some.schema == SCHEMA
    assert some.to_pylist() == [row for row in records if row["bucket"] in wanted]
    assert read_segment(store, segment, wanted, ["k", "n"]).column_names == ["k", "n"]


@given(records=ROWS, before=ROWS, cuts=st.lists(st.integers(0, 20), max_size=3))
@settings(max_examples=60)
def test_equal_rows_make_equal_bytes(
    records: list[dict[str, Any]], before: list[dict[str, Any]], cuts: list[int]
) -> None:
    """However they were sliced and chunked: a replay must replace the file by itself."""
    store = _memory_store()
    plain = write_segment(store, "s", pa.Table.from_pylist(records, SCHEMA), "pane", 0)
    sliced = pa.Table.from_pylist(before + records + before, SCHEMA).slice(
        len(before), len(records)
    )
    bounds = sorted({0, len(records), *(min(cut, len(records)) for cut in cuts)})
    parts = [sliced.slice(a, b - a) for a, b in pairwise(bounds)]
    chunked = pa.concat_tables(parts or [sliced])
    assert write_segment(store, "s", chunked, "pane", 0) == plain


def test_what_lies_under_nulls_does_not_reach_the_file() -> None:
    store = _memory_store()
    bits = pa.array([True, False, True]).buffers()[1]

    def table(hidden: int) -> pa.Table:
        values = pa.py_buffer(np.array([1, hidden, 3]))
        column = pa.Array.from_buffers(pa.int64(), 3, [bits, values])
        flags = pa.Array.from_buffers(pa.bool_(), 3, [None, pa.py_buffer(bytes([5 + hidden * 8]))])
        offsets = pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
        lists = pa.Array.from_buffers(pa.list_(pa.int64()), 3, [bits, offsets], children=[column])
        index = {"bucket": pa.array([0, 1, 2], pa.int32()), "pane": [0, 0, 0]}
        return pa.table({**index, "x": column, "flag": flags, "list": lists})

    assert table(1).equals(table(9))
    first = write_segment(store, "s", table(1), "pane", 0)
    assert write_segment(store, "s", table(9), "pane", 0) == first


def test_a_time_can_be_the_order_and_metadata_stays(store: Store) -> None:
    time = pa.array([5, 9], pa.timestamp("us", "UTC"))
    table = pa.table({"bucket": [0, 0], "ts": time}).replace_schema_metadata({"mine": "kept"})
    segment = write_segment(store, "s", table, "ts", 0)
    assert (segment.low, segment.high) == (5, 9)
    assert read_segment(store, segment, [0]).schema.metadata == {b"mine": b"kept"}


def test_a_replay_replaces_the_file(store: Store) -> None:
    old = write_segment(store, "s", rows([(0, 0, 1)]), "pane", 0)
    held = read_segment(store, old)
    new = write_segment(store, "s", rows([(0, 0, 2), (1, 1, 3)]), "pane", 0)
    assert read_segment(store, new)["v"].to_pylist() == [2, 3]
    assert held["v"].to_pylist() == [1]
    assert [entry.name for entry in store.files.list("segment")] == [new.path]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bucket": [1, 0], "pane": [0, 0]}, "must be sorted by"),
        ({"bucket": [0, 0], "pane": [1, 0]}, "bucket 0, pane 0 in row 1 after bucket 0, pane 1"),
        ({"bucket": [-1, 0], "pane": [1, 0]}, "buckets from 0 on; got bucket -1"),
        ({"bucket": [0, 0], "pane": [1, None]}, "a column pane without nulls; got nulls"),
        ({"bucket": [0, 0]}, "must have a column pane without nulls; got ['bucket']"),
    ],
)
def test_rows_out_of_place_are_refused(
    store: Store, columns: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(StateError) as caught:
        write_segment(store, "s", pa.table(columns), "pane", 0)
    assert message in str(caught.value)
    assert store.files.list("segment") == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b"])
def test_a_name_cannot_leave_the_folder(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="name must match"):
        write_segment(store, name, pa.table({"bucket": [0], "pane": [0]}), "pane", 0)


def _alter(store: Store, segment: Segment, damage: str) -> None:
    segment_module._remote.clear()  # who has written it has it in memory
    data = bytearray(store.read(segment.path))
    if damage == "missing":
        store.delete(segment.path)
        return
    if damage == "truncated":
        del data[len(data) // 2 :]
    elif damage == "empty":
        data.clear()
    elif damage == "longer":
        data += b"\0"
    else:
        data[len(data) // 2] ^= 1
    store.write(segment.path, bytes(data))


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "longer", "flipped"])
def test_damage_names_the_file_and_the_remedy(store: Store, damage: str) -> None:
    segment = write_segment(store, "s", rows([(0, i, i) for i in range(99)]), "pane", 0)
    _alter(store, segment, damage)
    for action in (read_segment, verify_segment):
        with pytest.raises(StateError) as caught:
            action(store, segment)
        assert str(caught.value).startswith(store.files.full(segment.path) + ": must ")
        assert "restart from an empty checkpoint; nothing was changed" in str(caught.value)


@pytest.mark.parametrize("byte", range(0, 1000, 53))
def test_any_flipped_bit_is_found(tmp_path: Path, byte: int) -> None:
    store = Store.open(str(tmp_path))
    segment = write_segment(store, "s", rows([(0, i, i) for i in range(9)]), "pane", 0)
    data = bytearray(store.read(segment.path))
    data[byte % len(data)] ^= 1 << (byte % 8)
    store.write(segment.path, bytes(data))
    with pytest.raises(StateError, match="must have checksum"):
        read_segment(store, segment)


def test_a_file_altered_after_it_was_read_is_checked_again(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    segment = write_segment(store, "s", rows([(0, i, i) for i in range(99)]), "pane", 0)
    read_segment(store, segment)
    _alter(store, segment, "flipped")
    with pytest.raises(StateError):
        read_segment(store, segment)


def test_the_checksum_is_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check = segment_module._check
    monkeypatch.setattr(segment_module, "_check", lambda *a: (checked.append(a[2]), check(*a)))
    store = Store.open(str(tmp_path))
    made = [write_segment(store, n, rows([(0, 0, 1)]), "pane", 0) for n in "ab"]
    for _ in range(3):
        for segment in made:
            read_segment(store.handle().open(), segment)
    assert len(checked) == 2


def test_another_kind_of_file_is_refused(store: Store) -> None:
    data = b"not an Arrow file at all"
    store.write("segment/s.arrow", data)
    fake = Segment("s", 1, len(data), zlib.crc32(data), BucketSet.of([0]), 0, 0, 0)
    with pytest.raises(StateError, match="must be a segment file"):
        read_segment(store, fake)


def test_a_newer_layout_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_file, "PLAIN", 99)
    segment = write_segment(store, "s", rows([(0, 0, 0)]), "pane", 0)
    with pytest.raises(CheckpointError, match="got version 99"):
        read_segment(store, segment)


def test_local_slices_are_views_of_the_file(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    count = 200_000
    table = pa.table(
        {
            "bucket": np.repeat(np.arange(4, dtype=np.int32), count // 4),
            "pane": np.tile(np.arange(count // 4), 4),
            "values": pa.array([[1.0, 2.0], None] * (count // 2)),
        }
    )
    segment = write_segment(store, "s", table, "pane", 0)
    before = pa.total_allocated_bytes()
    some = read_segment(store, segment, [0, 2, 3])
    assert some.num_rows == 3 * count // 4
    assert some["pane"].num_chunks == 2  # neighbours are one slice
    assert pa.total_allocated_bytes() - before < 10_000
    os.unlink(store.files.full(segment.path))
    assert some["values"][1].as_py() is None


def test_remote_segments_are_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _memory_store()
    made = [write_segment(store, n, rows([(0, 0, ord(n))]), "pane", 0) for n in "abc"]
    memory = remember(monkeypatch, 2 * made[0].bytes)
    for segment in made:
        read_segment(store, segment)
        store.delete(segment.path)
    assert memory.bytes == 2 * made[0].bytes
    assert read_segment(store, made[1])["v"].to_pylist() == [ord("b")]
    with pytest.raises(StateError, match="no such file"):
        read_segment(store, made[0])


def test_a_segment_larger_than_the_memory_is_read_but_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = _memory_store()
    segment = write_segment(store, "s", rows([(0, 0, 1)]), "pane", 0)
    memory = remember(monkeypatch, 10)
    assert read_segment(store, segment).num_rows == 1
    assert memory.bytes == 0


def test_decimals_keep_their_scale(store: Store) -> None:
    values = pa.array([Decimal("1.10"), None], pa.decimal128(38, 2))
    segment = write_segment(
        store, "s", pa.table({"bucket": [0, 1], "pane": [0, 0], "d": values}), "pane", 0
    )
    assert str(read_segment(store, segment, [0])["d"][0].as_py()) == "1.10"
