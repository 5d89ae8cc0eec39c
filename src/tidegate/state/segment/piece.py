"""Reads some buckets of a large segment on a remote store without reading all of it.

On a remote store a segment that is sorted by bucket is written as several **pieces**, record
batches of whole buckets. An instance that takes a few buckets over reads the end of the file, which
says where the pieces are, and the pieces that it needs. Each piece has a checksum of its own,
because checking that of the file would need all bytes.
"""

from __future__ import annotations

import base64
import io
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

PIECE_BYTES = 2**18
"""The size of a piece, about; a request for fewer bytes would take as long."""

WORTH_BYTES = 2**20
"""A file is read by pieces if that spares at least so many bytes; it takes more requests."""

_END_BYTES = 2**16

Ints = npt.NDArray[np.int64]
Read = Callable[[int, int], pa.Buffer]
"""From a position and a size to these bytes of a file."""


class _Tally(threading.local):
    fetched = 0
    by_segment: dict[str, int] | None = None


_TALLY = _Tally()


def fetched_bytes() -> int:
    """The bytes of segments that this thread has read from remote stores so far."""
    return _TALLY.fetched


@contextmanager
def fetching() -> Iterator[dict[str, int]]:
    """Counts the bytes that this thread reads in the block, by segment; blocks must not nest."""
    found: dict[str, int] = {}
    _TALLY.by_segment = found
    try:
        yield found
    finally:
        _TALLY.by_segment = None


def count_fetched(segment: str, size: int) -> None:
    """Count bytes of a segment that this thread has read from a remote store."""
    _TALLY.fetched += size
    if _TALLY.by_segment is not None:
        _TALLY.by_segment[segment] = _TALLY.by_segment.get(segment, 0) + size


def cut(table: pa.Table, offsets: Ints) -> list[pa.RecordBatch]:
    """Divide rows into pieces of whole buckets; `offsets` has each bucket's begin, and the end."""
    per_row = max(table.nbytes / max(table.num_rows, 1), 1.0)
    rows = max(int(PIECE_BYTES / per_row), 1)
    cuts = [0]
    for begin in offsets[1:-1].tolist():
        if begin - cuts[-1] >= rows:
            cuts.append(begin)
    ends = [*cuts[1:], table.num_rows]
    parts = (table.slice(a, b - a).combine_chunks() for a, b in zip(cuts, ends, strict=True))
    return [batch for part in parts for batch in part.to_batches()]


def described(batches: list[pa.RecordBatch]) -> dict[bytes, bytes]:
    """The metadata of a segment about its pieces: where they end, and their checksums."""
    ends = np.cumsum([b.num_rows for b in batches], dtype="<i8")
    sums = np.array([_checksum(b) for b in batches], "<u4")
    return {
        b"tidegate.pieces": base64.b64encode(ends.tobytes()),
        b"tidegate.sums": base64.b64encode(sums.tobytes()),
    }


class Pieces:
    """A segment's file of which only parts are read; `size` is that of the whole file."""

    def __init__(self, read: Read, size: int) -> None:
        self._reader = ipc.open_file(pa.PythonFile(_File(read, size), mode="r"))
        metadata = self._reader.schema.metadata
        self.schema = self._reader.schema
        self.metadata: dict[bytes, bytes] = metadata
        self._ends = np.frombuffer(base64.b64decode(metadata.get(b"tidegate.pieces", b"")), "<i8")
        self._sums = np.frombuffer(base64.b64decode(metadata.get(b"tidegate.sums", b"")), "<u4")

    def __len__(self) -> int:
        return len(self._ends)

    def of(self, begin: int, end: int) -> list[int]:
        """The numbers of the pieces with any of the rows [begin, end)."""
        starts = self._ends - np.diff(self._ends, prepend=0)
        found: list[int] = np.flatnonzero((starts < end) & (self._ends > begin)).tolist()
        return found

    def start(self, number: int) -> int:
        """The first row of a piece."""
        return int(self._ends[number - 1]) if number else 0

    def load(self, number: int) -> pa.RecordBatch | None:
        """The rows of a piece; None where they are damaged."""
        batch = self._reader.get_batch(number)
        return batch if _checksum(batch) == self._sums[number] else None


class _File(io.RawIOBase):
    """A remote file that Arrow reads in ranges; the end, which has the index, is read at once."""

    def __init__(self, read: Read, size: int) -> None:
        super().__init__()
        self._read = read
        self._size = size
        self._place = 0
        self._end_at = max(size - _END_BYTES, 0)
        self._end = memoryview(read(self._end_at, size - self._end_at))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = base + offset
        return self._place

    def read(self, size: int = -1) -> bytes:
        begin, rest = self._place, self._size - self._place
        length = rest if size < 0 else min(size, rest)
        self._place += length
        if begin >= self._end_at:
            return bytes(self._end[begin - self._end_at :][:length])
        return bytes(self._read(begin, length)) if length else b""

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)


def _checksum(batch: pa.RecordBatch) -> int:
    return zlib.crc32(batch.serialize())
