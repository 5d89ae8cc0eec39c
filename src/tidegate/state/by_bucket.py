"""Rows by bucket in a file, between who writes them in another order and who needs few buckets.

An operator that searches all of its buckets together writes rows in the order that they are
searched. On a remote store whoever takes some buckets over is to load those and nothing else. So a
large file has the rows by bucket there, each with the **place** that it had; who reads them, all or
some, has them in the order that they were written in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
