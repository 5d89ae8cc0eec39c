"""Writes and reads segments: immutable Arrow files with rows of several buckets.

A segment is an uncompressed Arrow IPC file whose rows are sorted by (bucket, order column). Its
schema metadata has the row range of each bucket, so a bucket is a slice of a memory map. An
operator that searches all its buckets together sorts its segments as it needs instead. On a remote
store a large one of these is sorted by bucket all the same, see `by_bucket`.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from tidegate.batch import gathered
from tidegate.errors import CheckpointError, StateError
from tidegate.memory import MEMORY, Memory
from tidegate.state.bucket_set import BucketSet
from tidegate.state.files import Files, guard
from tidegate.state.seal import REMEDY
from tidegate.state.segment.file import (
    COUNTS,
    VERSION,
    SegmentFile,
    as_written,
    buffer_of,
    by_bucket,
    counted,
    plain,
    ranges,
    rows_of,
    version_of_file,
    whole_file_of,
)
from tidegate.state.segment.nearby import nearby
from tidegate.state.segment.piece import WORTH_BYTES, Pieces, count_fetched

if TYPE_CHECKING:
    from tidegate.state.store import Store

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=-]*")


@dataclass(frozen=True)
class Segment:
    """The entry of a segment in a manifest: enough to find the file, to check it and to skip it.

    `buckets` are those with rows in it; `low` and `high` are the least and the greatest value of
    the order column (0 and -1 without rows). `tag` is a number from the operator that wrote the
    segment; only the keeper of its state knows what it means.
    """

    name: str
    rows: int
    bytes: int
    checksum: int
    buckets: BucketSet
    low: int
    high: int
    tag: int

    @property
    def path(self) -> str:
        """The file's name, relative to the root of the store."""
        return f"segment/{self.name}.arrow"


def write_segment(
    store: Store, name: str, table: pa.Table, order: str, tag: int, grouped: bool = True
) -> Segment:
    """Write a table as the segment `name`, which the caller derives from batch and instance.

    `table` has a non-null integer column `bucket` and is sorted by (bucket, `order`); without
    `grouped` it may be in any order. `order` is an integer or a time without nulls. Equal rows make
    equal bytes, whatever lies under their nulls and in their padding (except in fields of a struct
    that is null). So a replay, or a second attempt while the first one still runs, replaces the
    file by an equal one. Costs O(rows) and one copy of them.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a segment's name must match {_NAME.pattern}, got {name!r}")
    table = _canonical(table)
    bucket, position = _integers(table, "bucket", name), _integers(table, order, name)
    if grouped:
        _check_sorted(bucket, position, name, order)
    facts = {b"tidegate.order": order, b"tidegate.tag": str(tag)}
    kept, path = SegmentFile.of(table, bucket, grouped, facts), f"segment/{name}.arrow"
    stored = kept
    if not store.files.local:
        if not grouped and table.nbytes > WORTH_BYTES:
            rows = by_bucket(table, bucket)
            stored = SegmentFile.of(rows, np.sort(bucket), True, {**facts, **kept.counts})
        stored = stored.in_pieces()
    with store.files.create(path) as out:
        if store.files.local:
            stored.write(out)
        else:
            data = stored.buffer()
            out.write(data)
    if not store.files.local:  # the instance that wrote it will read it in the next batch
        key, near = _key(store.files, path, out.bytes, out.checksum), nearby()
        keep = _remote.put if near is None else near.put
        keep(key, data if kept.table is stored.table else kept.buffer())
    return Segment(
        name=name,
        rows=table.num_rows,
        bytes=out.bytes,
        checksum=out.checksum,
        buckets=BucketSet.of(kept.buckets),
        low=int(position.min()) if len(position) else 0,
        high=int(position.max()) if len(position) else -1,
        tag=int(tag),
    )


Absent = Callable[[str], pa.Array]
"""From a column that a segment lacks to its value in every row, as an array of one element."""


def read_segment(
    store: Store,
    segment: Segment,
    buckets: npt.ArrayLike | BucketSet | None = None,
    columns: Sequence[str] | None = None,
    trusted: bool = False,
    more: Sequence[str] = (),
    absent: Absent | None = None,
) -> pa.Table:
    """The rows of some buckets (None: all), in the segment's order; some columns (None: all).

    The columns of `more` are added if the segment has them. `absent` gives the value of `columns`
    that it lacks. A bucket that it lacks gives no rows.

    On a local file system the columns are slices of a memory map, which lives as long as the table,
    even if the file is deleted meanwhile. The checksum is verified once per process and version of
    the file, unless it is `trusted`. Damage is a StateError.
    """
    if buckets is not None and not store.files.local:
        some = _in_pieces(store.files, segment, BucketSet.of(buckets))
        if some is not None:
            return _selected(some, columns, more, absent)
    table = _open(store.files, segment, trusted)
    metadata = table.schema.metadata
    rows = _selected(table, columns, more, absent).replace_schema_metadata(plain(metadata))
    if buckets is None:
        return rows
    have, offsets = ranges(metadata)
    wanted = np.asarray(buckets, dtype=np.int64)
    chosen = np.isin(have, wanted)
    if chosen.all():
        return rows
    if not len(offsets):
        return rows.filter(pa.array(np.isin(table.column("bucket").to_numpy(), wanted)))
    return _slices(rows, chosen, offsets)


def rows_by_bucket(store: Store, segment: Segment) -> npt.NDArray[np.int64] | None:
    """The number of rows of each bucket of a segment, up to the last bucket; must not be written.

    None unless this process has read the segment and its file has the counts. Files of segments
    that are not grouped have them, except those of earlier versions.
    """
    found: npt.NDArray[np.int64] | None = _counts.held(
        (store.files.full(segment.path), segment.bytes, segment.checksum)
    )
    return found


def version_of(store: Store, segment: Segment) -> Hashable:
    """A key that identifies a segment's file, also against one that took its name later.

    A StateError where the file is gone.
    """
    where = store.files.full(segment.path)

    def stamp() -> tuple[Hashable, ...]:
        return (where, segment.bytes, segment.checksum, *store.files.stamp(segment.path))

    return guard(stamp, where, REMEDY)


def verify_segment(store: Store, segment: Segment) -> None:
    """Check a segment's file against its manifest, even if it was checked before."""
    buffer = guard(lambda: store.files.buffer(segment.path), store.files.full(segment.path), REMEDY)
    _check(buffer, segment, store.files.full(segment.path))


def _slices(table: pa.Table, chosen: npt.NDArray[np.bool_], offsets: npt.NDArray[Any]) -> pa.Table:
    """The row ranges whose flag is set; neighbouring ranges are one slice."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], chosen.astype(np.int8), [0]))))
    parts = [
        table.slice(int(offsets[a]), int(offsets[b] - offsets[a]))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    return pa.concat_tables(parts) if parts else table.slice(0, 0)


def _selected(
    rows: pa.Table, columns: Sequence[str] | None, more: Sequence[str], absent: Absent | None
) -> pa.Table:
    if columns is None:
        return rows
    if absent is not None:
        same = pa.array(np.zeros(rows.num_rows, np.int64))
        for name in columns:
            if name not in rows.column_names:
                rows = rows.append_column(name, absent(name).take(same))
    return rows.select([*columns, *(name for name in more if name in rows.column_names)])


def _size(buffer: pa.Buffer) -> int:
    return int(buffer.size)


_verified = Memory(sys.maxsize).cache(1, size=lambda known: 0, most_entries=65_536)
"""Files whose checksum this process has verified; some hundred bytes each."""
_counts = Memory(sys.maxsize).cache(1, size=lambda known: 0, most_entries=4_096)
"""The number of rows of each bucket, by file."""
_remote = MEMORY.cache(1 / 4, _size)
"""Segments that were read from a remote store. Local files, and those that an executor of Spark has
nearby, are mapped: the page cache of the system keeps them."""


def _open(files: Files, segment: Segment, trusted: bool) -> pa.Table:
    where = files.full(segment.path)
    try:
        table = rows_of(guard(lambda: _whole(files, segment, where, trusted), where, REMEDY))
        version = version_of_file(table.schema.metadata)
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise StateError(where, "must be a segment file", str(error), REMEDY) from error
    if version > VERSION:
        raise CheckpointError(
            where,
            f"must be a segment of version {VERSION} or older",
            f"version {version}",
            "Run it with the newer Tidegate that wrote it.",
        )
    if COUNTS in table.schema.metadata:
        _counts.put((where, segment.bytes, segment.checksum), counted(table.schema.metadata))
    return table


def _key(files: Files, path: str, size: int, checksum: int) -> tuple[Hashable, ...]:
    """A key that identifies the contents of a file."""
    return (files.full(path), size, checksum, *files.stamp(path))


def _in_pieces(files: Files, segment: Segment, wanted: BucketSet) -> pa.Table | None:
    """The rows of some buckets by ranged reads; None where reading the whole file is better."""
    mine = segment.buckets & wanted
    spared = segment.bytes * (1 - len(mine) / max(len(segment.buckets), 1))
    whole = _key(files, segment.path, segment.bytes, segment.checksum)
    # What is here already costs no request at all.
    if spared < WORTH_BYTES or _has(whole):
        return None
    where = files.full(segment.path)

    def fetch(begin: int, size: int) -> pa.Buffer:
        count_fetched(segment.name, size)
        return files.part(segment.path, begin, size)

    def part(begin: int, size: int) -> pa.Buffer:
        if begin + size < segment.bytes:
            return fetch(begin, size)
        return _remote.get((*whole, "end"), partial(fetch, begin, size))

    @cache
    def pieces() -> Pieces:
        return Pieces(part, segment.bytes)

    def load(number: int) -> pa.Buffer:
        batch = pieces().load(number)
        if batch is None:
            raise StateError(where, "must have the rows it was written with", "others", REMEDY)
        return batch.serialize()

    def rows() -> pa.Buffer:
        have, offsets = ranges(pieces().metadata)
        chosen = np.flatnonzero(np.isin(have, mine.numbers()))
        parts = []
        for begin, end in zip(offsets[chosen].tolist(), offsets[chosen + 1].tolist(), strict=True):
            for number in pieces().of(begin, end):
                data = _remote.get((*whole, number), partial(load, number))
                batch = ipc.read_record_batch(data, pieces().schema)
                first = pieces().start(number)
                low, high = max(begin - first, 0), min(end - first, batch.num_rows)
                parts.append(pa.table(batch.slice(low, high - low)))
        found = as_written(pa.concat_tables(parts).combine_chunks())
        return buffer_of(found.replace_schema_metadata(plain(pieces().metadata)))

    some = (*whole, mine.text)
    try:
        if not _has(some) and (not mine or len(guard(pieces, where, REMEDY)) < 2):
            return None
        return rows_of(guard(lambda: keep_fetched(some, rows), where, REMEDY))
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise StateError(where, "must be a segment file", str(error), REMEDY) from error


def _whole(files: Files, segment: Segment, where: str, trusted: bool) -> pa.Buffer:
    """All bytes of a segment's file, verified now or before, or trusted."""
    key = _key(files, segment.path, segment.bytes, segment.checksum)

    def load() -> pa.Buffer:
        buffer = files.buffer(segment.path)
        if buffer.size != segment.bytes or (key not in _verified and not trusted):
            _check(buffer, segment, where)
            _verified.put(key, True)
        if files.local:
            return buffer
        count_fetched(segment.name, buffer.size)
        return whole_file_of(buffer)

    if files.local:
        return load()
    return keep_fetched(key, load)


def _has(key: Hashable) -> bool:
    near = nearby()
    return key in _remote or (near is not None and near.holds(key))


def keep_fetched(key: Hashable, load: Callable[[], pa.Buffer]) -> pa.Buffer:
    """The buffer under a key, kept by this process or by its executor; else loaded and kept."""
    near = nearby()
    return _remote.get(key, load) if near is None else near.get(key, load)


def _check(buffer: pa.Buffer, segment: Segment, where: str) -> None:
    if buffer.size != segment.bytes:
        got, want = f"{buffer.size} bytes", f"{segment.bytes} bytes"
    else:
        got, want = (f"checksum {c:08x}" for c in (zlib.crc32(buffer), segment.checksum))
    if got != want:
        raise StateError(where, f"must have {want}, as its manifest says", got, REMEDY)


def _canonical(table: pa.Table) -> pa.Table:
    """The same rows in one chunk per column, with zeros under nulls and in padding.

    Arrow writes a slice with its neighbours' bytes in the padding, and a null with whatever was
    computed under it. A gather makes both zero: without it equal rows could make other bytes.
    """
    return gathered(table, np.arange(table.num_rows))


def _integers(table: pa.Table, column: str, name: str) -> npt.NDArray[np.int64]:
    if column not in table.column_names or table[column].null_count:
        got = "nulls in it" if column in table.column_names else f"{table.column_names}"
        raise StateError(f"segment {name}", f"must have a column {column} without nulls", got)
    return whole_numbers(table[column])


def whole_numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A column of integers or times without nulls as int64."""
    if not pa.types.is_signed_integer(column.type):
        column = column.cast(pa.int64())
    numbers: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def _check_sorted(
    bucket: npt.NDArray[np.int64], position: npt.NDArray[np.int64], name: str, order: str
) -> None:
    up, same = bucket[1:] > bucket[:-1], bucket[1:] == bucket[:-1]
    fine = up | (same & (position[1:] >= position[:-1]))
    if not fine.all():
        row = int(np.argmin(fine)) + 1
        raise StateError(
            f"segment {name}",
            f"must be sorted by (bucket, {order})",
            f"bucket {bucket[row]}, {order} {position[row]} in row {row} after "
            f"bucket {bucket[row - 1]}, {order} {position[row - 1]}",
        )
    if len(bucket) and bucket[0] < 0:
        raise StateError(f"segment {name}", "must have buckets from 0 on", f"bucket {bucket[0]}")
