"""Collects late and rejected tuples in full, for the side outputs of a sink."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.batch import to_bytes
from tidegate.calendar.microsecond import FIRST_US
from tidegate.execute.job import LATE, REJECTED, Job, Parcel, Split
from tidegate.schema import event_times, foreign_part
from tidegate.sink.json import objects


def side_parcels(job: Job, split: Split, is_late: NDArray[np.bool_]) -> list[Parcel]:
    """The late and rejected tuples of a split, with all columns that queries can read.

    Reads the split once more, because the first read had only the columns that the query needs.
    """
    stream = job.subquery.streams[split.input]
    assert stream is not None
    rows = split.reader.read([f.name for f in stream.schema if foreign_part(f.type) is None])
    new = rows.seq >= split.new_from
    times, timed = event_times(rows.table.column(stream.time))
    timeless = new & ~timed
    late = new & is_late
    target = split.index % job.mapping.instances
    parcels = []
    if late.any():
        table = rows.table.filter(pa.array(late))
        table = table.append_column("_source", pa.repeat(split.source, table.num_rows))
        table = table.append_column("_seq", pa.array(rows.seq[late]))
        reason = "below the newest event time of its source, or below the frontier it joined at"
        table = table.append_column("_reason", pa.repeat(reason, table.num_rows))
        parcels.append(Parcel(target, split.index, LATE, to_bytes(table), stream.name))
    tables = []
    bad = [r for r in rows.rejects if r.seq >= split.new_from]
    if bad:
        reasons, raw = pa.array([r.reason for r in bad]), pa.array([r.raw for r in bad])
        tables.append(_rejected(split, stream.name, [r.seq for r in bad], reasons, raw))
    if timeless.any():
        found = rows.table.filter(pa.array(timeless)).combine_chunks().to_batches()[0]
        reasons = _reasons(stream.time, found.column(stream.time), times[timeless])
        seq = rows.seq[timeless]
        tables.append(_rejected(split, stream.name, seq, reasons, objects(found)))
    if tables:
        table = pa.concat_tables(tables).sort_by("_seq")
        parcels.append(Parcel(target, split.index, REJECTED, to_bytes(table), stream.name))
    return parcels


def _reasons(time: str, column: pa.Array, times: NDArray[np.int64]) -> pa.Array:
    """Why rows have no event time; `times` are those of the column."""
    beyond = pc.if_else(pa.array(times < FIRST_US), "before the year 1", "after the year 9999")
    reasons = pc.if_else(column.is_null(), "NULL", beyond)
    return pc.binary_join_element_wise(time, "is", reasons, " ")


def _rejected(
    split: Split,
    stream: str,
    seq: Sequence[int] | NDArray[np.int64],
    reasons: pa.Array,
    raw: pa.Array,
) -> pa.Table:
    return pa.table(
        {
            "_stream": pa.repeat(stream, len(seq)),
            "_source": pa.repeat(split.source, len(seq)),
            "_seq": pa.array(seq, pa.int64()),
            "_reason": reasons,
            "_raw": raw,
        }
    )
