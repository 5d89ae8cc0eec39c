"""Lays out the Arrow file of a segment, and says in its metadata where each bucket is.

Its schema metadata says of the rows what is needed to find some of them: the buckets, and their
ranges where rows are by bucket, or how many there are of each where they are not.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from tidegate.state.piece import cut, described

PLACE = "tidegate.place"
"""The column of the place; whoever reads the file by `as_written` never sees it."""


def by_bucket(rows: pa.Table, bucket: npt.NDArray[np.int64]) -> pa.Table:
    """The rows sorted by bucket, as they are within one, with their places; four bytes a row."""
    place = np.argsort(bucket, kind="stable")
    return rows.take(pa.array(place)).append_column(PLACE, pa.array(place.astype(np.int32)))


def is_by_bucket(schema: pa.Schema) -> bool:
    """Whether the rows of a file have places."""
    return PLACE in schema.names


def as_written(rows: pa.Table) -> pa.Table:
    """All or some rows of a file in the order that they were written in, without their places.

    One copy of them; nothing where they have no places.
    """
    if not is_by_bucket(rows.schema):
        return rows
    place = rows.column(PLACE).to_numpy()
    # Buckets are ascending runs of places, which a stable sort merges.
    return rows.drop_columns(PLACE).take(pa.array(np.argsort(place, kind="stable")))


PLAIN, VERSION = 1, 2
"""The version of a file, and of one whose rows have places (`by_bucket`), which a Tidegate that
knows the first alone must not read."""

COUNTS = b"tidegate.counts"
"""What a file says of how many rows each bucket has, if it does."""

_BUCKETS, _OFFSETS, _VERSION = b"tidegate.buckets", b"tidegate.offsets", b"tidegate.version"
_PREFIX = b"tidegate."


@dataclass(frozen=True)
class SegmentFile:
    """Rows, in one or several parts, and what it says of them.

    `buckets` are those it has, `offsets` where the rows of each begin, and the last end, if they
    are by bucket.
    """

    table: pa.Table
    buckets: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    said: Mapping[bytes, bytes | str]
    parts: Sequence[pa.Table | pa.RecordBatch]

    @staticmethod
    def of(
        table: pa.Table,
        bucket: npt.NDArray[np.int64],
        grouped: bool,
        facts: Mapping[bytes, bytes | str],
    ) -> SegmentFile:
        said = {_VERSION: str(VERSION if is_by_bucket(table.schema) else PLAIN), **facts}
        if grouped:
            starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1])[: len(bucket)])
            buckets, offsets = bucket[starts], np.append(starts, len(bucket))
        else:
            buckets, rows = np.unique(bucket, return_counts=True)
            offsets = np.empty(0, np.int64)
            said[COUNTS] = base64.b64encode(rows.astype("<i8").tobytes())
        said[_BUCKETS] = base64.b64encode(buckets.astype("<i4").tobytes())
        said[_OFFSETS] = base64.b64encode(offsets.astype("<i8").tobytes())
        return SegmentFile(table, buckets, offsets, said, (table,))

    @property
    def counts(self) -> dict[bytes, bytes | str]:
        """What it says of how many rows each bucket has."""
        return {COUNTS: self.said[COUNTS]}

    def in_pieces(self) -> SegmentFile:
        """The same in several parts, each of whole buckets, where it is by bucket and large."""
        pieces = cut(self.table, self.offsets) if len(self.offsets) else []
        if len(pieces) < 2:
            return self
        return replace(self, parts=pieces, said={**described(pieces), **self.said})

    def write(self, out: Any) -> None:
        """Write it to a stream."""
        metadata = {**(self.table.schema.metadata or {}), **self.said}
        schema = self.table.schema.with_metadata(metadata)
        with ipc.new_file(out, schema) as writer:
            for part in self.parts:
                writer.write(part.replace_schema_metadata(schema.metadata))

    def buffer(self) -> pa.Buffer:
        """All of it in memory."""
        memory = pa.BufferOutputStream()
        self.write(memory)
        return memory.getvalue()


def version_of_file(metadata: Mapping[bytes, bytes]) -> int:
    """The version of a file by its metadata; a KeyError or ValueError where it is no segment."""
    return int(metadata[_VERSION])


def ranges(metadata: Mapping[bytes, bytes]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The buckets that a file has, and the rows at which each begins, and the last ends.

    None of the latter where it is not by bucket.
    """
    have = np.frombuffer(base64.b64decode(metadata[_BUCKETS]), "<i4")
    return have, np.frombuffer(base64.b64decode(metadata[_OFFSETS]), "<i8")


def counted(metadata: Mapping[bytes, bytes]) -> npt.NDArray[np.int64]:
    """How many rows there are of each bucket up to the last, of a file that says so."""
    have = np.frombuffer(base64.b64decode(metadata[_BUCKETS]), "<i4")
    counts = np.zeros(int(have[-1]) + 1 if len(have) else 0, np.int64)
    counts[have] = np.frombuffer(base64.b64decode(metadata[COUNTS]), "<i8")
    return counts


def plain(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes] | None:
    """What a segment's table was written with, without what the file says of itself."""
    return {k: v for k, v in metadata.items() if not k.startswith(_PREFIX)} or None


def rows_of(data: pa.Buffer) -> pa.Table:
    """All rows of a file in the order that they were written in; as its metadata says then."""
    table = ipc.open_file(data).read_all()
    if not is_by_bucket(table.schema):
        return table
    metadata = {**table.schema.metadata, _OFFSETS: b""}
    return as_written(table).replace_schema_metadata(metadata)


def whole_file_of(data: pa.Buffer) -> pa.Buffer:
    """A file whose rows are in the order that they were written in, so that it may be mapped."""
    if not is_by_bucket(ipc.open_file(data).schema):
        return data
    return buffer_of(rows_of(data))


def buffer_of(table: pa.Table) -> pa.Buffer:
    """A table as an Arrow file in memory."""
    memory = pa.BufferOutputStream()
    with ipc.new_file(memory, table.schema) as writer:
        writer.write(table)
    return memory.getvalue()
