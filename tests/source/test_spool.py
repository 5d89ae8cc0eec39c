"""Rows of a streaming DataFrame in the checkpoint: read as they were written, or told."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.errors import StateError
from tidegate.schema import TIME
from tidegate.source.spool import SpooledFile, SpoolSource
from tidegate.state.store import Store

ROWS = pa.table({"at": pa.array([10, 20, 30], TIME), "k": ["a", "b", "c"]})
NAME = "spool/rides-00000000-00000.arrow"


def spooled(folder: Path) -> SpoolSource:
    """A run as a task of Spark has written it."""
    store, sink = Store.open(folder), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    data = sink.getvalue().to_pybytes()
    store.write(NAME, data)
    return SpoolSource(store, SpooledFile(NAME, 3, zlib.crc32(data)), ROWS.schema, "at")


def test_rows_come_back(tmp_path: Path) -> None:
    source = spooled(tmp_path)
    assert source.times(1, 3)[0].tolist() == [20, 30]
    read = source.reader(1, 3).read(["k"])
    assert read.table.column("k").to_pylist() == ["b", "c"]
    assert read.seq.tolist() == [1, 2]


@pytest.mark.parametrize("place", [-100, -60, 300])
def test_a_run_whose_bytes_have_changed_is_not_read(tmp_path: Path, place: int) -> None:
    """A value that changed on the disk would have gone into the results."""
    source = spooled(tmp_path)
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    for read in (lambda: source.times(0, 3), lambda: source.reader(0, 3).read(["k"])):
        with pytest.raises(StateError, match="must be as it was written; got other bytes") as told:
            read()
        assert told.value.where == str(path)


def test_a_run_that_is_gone_is_told(tmp_path: Path) -> None:
    source = spooled(tmp_path)
    (tmp_path / NAME).unlink()
    with pytest.raises(StateError, match="must be there; got no such file"):
        source.times(0, 3)
