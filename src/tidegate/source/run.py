"""A sorted run of tuples that another system delivered, kept in the checkpoint until consumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.schema import cast_table, to_us
from tidegate.source.cache import PIECES
from tidegate.source.protocol import Bools, Int64s, Reader, Rows, check_columns
from tidegate.state.store import Store, StoreHandle


@dataclass(frozen=True)
class Run:
    """A file of the spool: its name below the checkpoint, its rows, and the sum of its bytes."""

    name: str
    rows: int
    checksum: int


class RunSource:
    """One Arrow file of the spool: complete when it appears, in order of time."""

    def __init__(self, store: Store, run: Run, schema: pa.Schema, time: str) -> None:
        self.id = run.name
        self.schema = schema
        self._run = run
        self._handle = store.handle()
        self._time = time

    def extend(self, rows: int) -> int:
        return self._run.rows

    def ended(self) -> bool:
        return True

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        table = _opened(self._handle, self._run, self.schema)
        return to_us(table.column(self._time).slice(start, stop - start))

    def reader(self, start: int, stop: int) -> Reader:
        return RunReader(start, stop, self._handle, self._run, self.schema)

    def breaks(self, start: int, stop: int) -> None:
        """Any position: nothing is decoded."""


@dataclass(frozen=True)
class RunReader:
    """A range of a run, for a task; shares the mapped file where it is local."""

    start: int
    stop: int
    store: StoreHandle
    run: Run
    schema: pa.Schema

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.run.name)
        table = _opened(self.store, self.run, self.schema).select(list(columns))
        rows = table.slice(self.start, self.stop - self.start)
        return Rows(rows, np.arange(self.start, self.stop, dtype=np.int64))


def _opened(handle: StoreHandle, run: Run, schema: pa.Schema) -> pa.Table:
    def load() -> pa.Table:
        with pa.ipc.open_file(handle.open().files.buffer(run.name)) as reader:
            return cast_table(reader.read_all(), schema)

    # The checksum tells a run from one of an earlier checkpoint that was at the same place.
    return PIECES.get(("run", handle.location, run), load)
