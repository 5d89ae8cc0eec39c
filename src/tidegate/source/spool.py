"""Reads tuples that another system delivered from the spool in the checkpoint."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.arrival import ArrivalTimes
from tidegate.connector import Bools, Int64s, Reader, Rows, Source, check_columns
from tidegate.errors import StateError
from tidegate.schema import cast_table, event_times
from tidegate.source.piece import PIECES
from tidegate.state.files import guard
from tidegate.state.handle import StoreHandle
from tidegate.state.seal import REMEDY
from tidegate.state.store import Store


@dataclass(frozen=True)
class SpooledFile:
    """A file of the spool: its name below the checkpoint, its rows, and its CRC-32."""

    name: str
    rows: int
    checksum: int


class SpoolSource(Source):
    """One Arrow file of the spool. It appears whole, and its rows are in order of time."""

    def __init__(
        self,
        store: Store,
        file: SpooledFile,
        schema: pa.Schema,
        time: str,
        arrivals: ArrivalTimes | None = None,
    ) -> None:
        self.id = file.name
        self.schema = schema
        self._file = file
        self._handle = store.handle()
        self._time = time
        self.arrivals = arrivals
        """When its tuples were delivered; None where they do not come from a stream."""

    def extend(self, rows: int) -> int:
        return self._file.rows

    def ended(self) -> bool:
        return True

    def untaken(self, position: int) -> tuple[int, str]:
        """How many rows there are from a position on."""
        return self._file.rows - position, "rows"

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        table = _opened(self._handle, self._file, self.schema)
        return event_times(table.column(self._time).slice(start, stop - start))

    def reader(self, start: int, stop: int) -> Reader:
        return SpoolReader(start, stop, self._handle, self._file, self.schema)


@dataclass(frozen=True)
class SpoolReader(Reader):
    """A range of a spooled file, for a task; shares the mapped file where it is local."""

    start: int
    stop: int
    store: StoreHandle
    file: SpooledFile
    schema: pa.Schema

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.file.name)
        table = _opened(self.store, self.file, self.schema).select(list(columns))
        rows = table.slice(self.start, self.stop - self.start)
        return Rows.of_range(rows, self.start, self.stop)


def _opened(handle: StoreHandle, file: SpooledFile, schema: pa.Schema) -> pa.Table:
    """The rows of a spooled file, cached; each load checks its checksum.

    A file that is gone or damaged is a StateError: Spark will not deliver its rows again.
    """

    def load() -> pa.Table:
        files = handle.open().files
        where = files.full(file.name)
        buffer = guard(lambda: files.buffer(file.name), where, REMEDY)
        if zlib.crc32(buffer) != file.checksum:
            raise StateError(where, "must be as it was written", "other bytes", REMEDY)
        with pa.ipc.open_file(buffer) as reader:
            return cast_table(reader.read_all(), schema, file.name)

    # The checksum is in the key: an earlier checkpoint at this place may have had the same names.
    return PIECES.get(("spool", handle.location, file), load)
