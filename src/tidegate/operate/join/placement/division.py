"""Divides the work of a join among the buckets, so that balancing can move the busy ones.

Tuples that are placed by key meet tuples of their own bucket: a bucket's work is the pairs that
were looked at. Tuples that are dealt in turn are met by all new tuples: a bucket's work is the
number of its tuples, times the new tuples of the other side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tidegate.operate.bucket_work import BucketWork
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.chain.newest import Newest
from tidegate.operate.join.chain.run_index import Ints, known
from tidegate.operate.join.match import HeldTuples, StoredTuples

Buckets = npt.NDArray[np.int32]


def stored_work(own: Sequence[Buckets], buckets: int) -> BucketWork:
    """One for each new tuple that is stored; `own` has the buckets of those, by side."""
    return np.bincount(np.concatenate(own), minlength=buckets).astype(np.float64)


def pair_work(dealt: Sequence[Buckets], pairs: Sequence[Ints], buckets: int) -> BucketWork:
    """One for each pair; `pairs` counts those of each new tuple by side, `dealt` has its bucket."""
    work = np.zeros(buckets)
    for bucket, counts in zip(dealt, pairs, strict=True):
        work += np.bincount(bucket, weights=counts, minlength=buckets)
    return work


def held_work(newest: Newest, stored: StoredTuples, asking: int, buckets: int) -> BucketWork:
    """One for each tuple of a side that is held here, times the `asking` tuples of the other."""
    work = np.zeros(buckets)
    if not asking:
        return work
    new: Buckets = newest.table.column(BUCKET).to_numpy()
    counts = [np.bincount(new[newest.rows]), *(run.by_bucket for run in stored.runs)]
    counts += [_rows(held) for held in stored.held]
    for one in counts:
        work[: len(one)] += one
    return work * asking


def _rows(held: HeldTuples) -> Ints:
    if held.by_bucket is not None:
        return held.by_bucket

    def count() -> Ints:
        return np.bincount(held.table.column(BUCKET).to_numpy())

    return known(held.token, count, "rows")
