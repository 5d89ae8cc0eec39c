"""Side outputs: late and rejected tuples in full, between a split and the sink."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.batch import to_bytes
from tidegate.runtime.job import LATE, REJECTED, Job, Parcel, Split


def side_parcels(job: Job, split: Split, is_late: NDArray[np.bool_]) -> list[Parcel]:
    """The late and rejected tuples of a split with all their columns; reads the split again."""
    stream = job.plan.streams[split.stream]
    rows = split.reader.read(stream.schema.names)
    new = rows.seq >= split.new_from
    time_column = rows.table.column(stream.time)
    timeless = new & time_column.is_null().to_numpy()
    late = new & is_late
    target = split.index % job.mapping.instances
    parcels = []
    if late.any():
        table = rows.table.filter(pa.array(late))
        table = table.append_column("_source", pa.array([split.source] * table.num_rows))
        table = table.append_column("_seq", pa.array(rows.seq[late]))
        reason = "below the newest event time of its source, or below the frontier it joined at"
        table = table.append_column("_reason", pa.array([reason] * table.num_rows))
        parcels.append(Parcel(target, split.index, LATE, to_bytes(table), stream.name))
    bad = [(r.seq, r.reason, r.raw) for r in rows.rejects if r.seq >= split.new_from]
    if timeless.any():
        found = rows.table.filter(pa.array(timeless)).to_pylist()
        reason = f"{stream.time} is NULL"
        raw = [json.dumps(row, default=str) for row in found]
        bad += [(int(s), reason, r) for s, r in zip(rows.seq[timeless], raw, strict=True)]
    if bad:
        bad.sort()
        table = pa.table(
            {
                "_stream": pa.array([stream.name] * len(bad), pa.string()),
                "_source": pa.array([split.source] * len(bad), pa.string()),
                "_seq": pa.array([b[0] for b in bad], pa.int64()),
                "_reason": pa.array([b[1] for b in bad], pa.string()),
                "_raw": pa.array([b[2] for b in bad], pa.string()),
            }
        )
        parcels.append(Parcel(target, split.index, REJECTED, to_bytes(table), stream.name))
    return parcels
