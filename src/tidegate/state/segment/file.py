"""Lays out the Arrow file of a segment.

The schema metadata has what is needed to find some of the rows: the buckets, and the row range of
each where rows are sorted by bucket, or the number of its rows where they are not.
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

from tidegate.state.segment.piece import cut, described

PLACE = "tidegate.place"
"""The column with the place of a row in the order of writing; `as_written` removes it."""


def by_bucket(rows: pa.Table, bucket: npt.NDArray[np.int64]) -> pa.Table:
    """The rows in a stable sort by bucket, with their places, which are four bytes a row."""
    place = np.argsort(bucket, kind="stable")
    return rows.take(pa.array(place)).append_column(PLACE, pa.array(place.astype(np.int32)))


def is_by_bucket(schema: pa.Schema) -> bool:
    """Whether a file's rows were sorted by bucket, and have places."""
    return PLACE in schema.names


def as_written(rows: pa.Table) -> pa.Table:
    """All or some rows of a file in the order in which the operator wrote them, without places.

    Costs a copy where they have places, nothing otherwise.
    """
    if not is_by_bucket(rows.schema):
        return rows
    place = rows.column(PLACE).to_numpy()
    # Each bucket is an ascending run of places: numpy's stable sort merges such runs fast.
    return rows.drop_columns(PLACE).take(pa.array(np.argsort(place, kind="stable")))


PLAIN, VERSION = 1, 2
"""The version of a file, and of a file whose rows have places (`by_bucket`). A Tidegate that knows
only the first one must not read the second: it would take the rows in the wrong order."""

COUNTS = b"tidegate.counts"
"""The metadata with the number of rows of each bucket; not in every file."""

_BUCKETS, _OFFSETS, _VERSION = b"tidegate.buckets", b"tidegate.offsets", b"tidegate.version"
_PREFIX = b"tidegate."


@dataclass(frozen=True)
class SegmentFile:
    """The rows of a file, in one or several parts, and its metadata (`said`).

    `offsets` has the begin of each of its `buckets`, and the end of the last; it is empty where the
    rows are not sorted by bucket.
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
        """The metadata with the number of rows of each bucket."""
        return {COUNTS: self.said[COUNTS]}

    def in_pieces(self) -> SegmentFile:
        """The same file in pieces of whole buckets, if it is sorted by bucket and large."""
        pieces = cut(self.table, self.offsets) if len(self.offsets) else []
        if len(pieces) < 2:
            return self
        return replace(self, parts=pieces, said={**described(pieces), **self.said})

    def write(self, out: Any) -> None:
        """Write the file to a stream."""
        metadata = {**(self.table.schema.metadata or {}), **self.said}
        schema = self.table.schema.with_metadata(metadata)
        with ipc.new_file(out, schema) as writer:
            for part in self.parts:
                writer.write(part.replace_schema_metadata(schema.metadata))

    def buffer(self) -> pa.Buffer:
        """The bytes of the file."""
        memory = pa.BufferOutputStream()
        self.write(memory)
        return memory.getvalue()


def version_of_file(metadata: Mapping[bytes, bytes]) -> int:
    """The version of a file; a KeyError or ValueError if its metadata is not of a segment."""
    return int(metadata[_VERSION])


def ranges(metadata: Mapping[bytes, bytes]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The buckets of a file, and the row at which each begins, with the end of the last.

    There are no rows where the file is not sorted by bucket.
    """
    have = np.frombuffer(base64.b64decode(metadata[_BUCKETS]), "<i4")
    return have, np.frombuffer(base64.b64decode(metadata[_OFFSETS]), "<i8")


def counted(metadata: Mapping[bytes, bytes]) -> npt.NDArray[np.int64]:
    """The number of rows of each bucket up to the last, of a file with COUNTS."""
    have = np.frombuffer(base64.b64decode(metadata[_BUCKETS]), "<i4")
    counts = np.zeros(int(have[-1]) + 1 if len(have) else 0, np.int64)
    counts[have] = np.frombuffer(base64.b64decode(metadata[COUNTS]), "<i8")
    return counts


def plain(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes] | None:
    """The metadata that the operator's table had, without that of the file."""
    return {k: v for k, v in metadata.items() if not k.startswith(_PREFIX)} or None


def rows_of(data: pa.Buffer) -> pa.Table:
    """All rows of a file in the order in which the operator wrote them.

    Where that is not by bucket, the metadata has no offsets any more.
    """
    table = ipc.open_file(data).read_all()
    if not is_by_bucket(table.schema):
        return table
    metadata = {**table.schema.metadata, _OFFSETS: b""}
    return as_written(table).replace_schema_metadata(metadata)


def whole_file_of(data: pa.Buffer) -> pa.Buffer:
    """A file with its rows in the order in which the operator wrote them, for mapping."""
    if not is_by_bucket(ipc.open_file(data).schema):
        return data
    return buffer_of(rows_of(data))


def buffer_of(table: pa.Table) -> pa.Buffer:
    """A table as an Arrow file in memory."""
    memory = pa.BufferOutputStream()
    with ipc.new_file(memory, table.schema) as writer:
        writer.write(table)
    return memory.getvalue()
