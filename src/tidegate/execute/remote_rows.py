"""Leaves many rows of an instance in objects of a remote checkpoint, for the tasks that read them.

The driver then passes on names only. Rows are stored in chunks, so that a task that needs a span of
time reads little else. The objects live for one batch and do not count for recovery: the next start
deletes what a crash left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, from_bytes, to_bytes
from tidegate.state.handle import StoreHandle

CHUNK_ROWS = 131_072
LEAST_BYTES = 4 * 2**20
"""Fewer bytes travel through the driver: that costs less than to write and read objects."""

_SAMPLES = 64


@dataclass(frozen=True)
class Chunk:
    """One object: its name in the store, and the first and last time of its rows."""

    name: str
    first_us: int
    last_us: int


@dataclass(frozen=True)
class RemoteRows:
    """Rows in the order of their times, in chunks; `empty` is their table without rows."""

    store: StoreHandle
    chunks: tuple[Chunk, ...]
    empty: bytes

    @staticmethod
    def leave(store: StoreHandle, name: str, table: pa.Table, time: str) -> RemoteRows:
        """Write rows, whose column `time` ascends, as objects whose names begin with `name`."""
        files, chunks = store.open(), []
        for number, start in enumerate(range(0, table.num_rows, CHUNK_ROWS)):
            rows = table.slice(start, CHUNK_ROWS)
            times = rows.column(time)
            chunk = Chunk(f"{name}-{number:05d}", times[0].value, times[-1].value)
            files.write(chunk.name, to_bytes(rows))
            chunks.append(chunk)
        return RemoteRows(store, tuple(chunks), to_bytes(table.slice(0, 0)))

    def load(self, low_us: int = MIN_US, high_us: int = MAX_US) -> pa.Table:
        """The rows of all chunks that have times from `low_us` to before `high_us`."""
        files = self.store.open()
        return pa.concat_tables(
            [from_bytes(self.empty)]
            + [
                from_bytes(files.read(chunk.name))
                for chunk in self.chunks
                if chunk.last_us >= low_us and chunk.first_us < high_us
            ]
        )

    def sample(self) -> Iterator[npt.NDArray[np.int64]]:
        """Guessed times of each chunk, evenly spread between its ends; reads nothing."""
        for chunk in self.chunks:
            yield np.linspace(chunk.first_us, chunk.last_us, _SAMPLES).astype(np.int64)

    def names(self) -> list[str]:
        return [chunk.name for chunk in self.chunks]
