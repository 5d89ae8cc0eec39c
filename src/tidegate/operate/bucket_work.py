"""Measures how the work of an instance was divided among its buckets.

An operator counts what its cost is proportional to: rows, values, pairs, or the time of user code.
Only the proportions matter: the driver divides the CPU time of the instance by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.clock import Clock
from tidegate.route.mapping import Mapping

BucketWork = npt.NDArray[np.float64]
"""One number for each bucket of the query."""

_TRAVELS = "<f4"


def rows_by_bucket(tables: Iterable[pa.Table], buckets: int) -> BucketWork:
    """Count the rows of each bucket in tables with a column `bucket`; costs O(rows)."""
    work = np.zeros(buckets)
    for table in tables:
        if table.num_rows:
            work += np.bincount(table.column("bucket").to_numpy(), minlength=buckets)
    return work


def values_by_bucket(tables: Iterable[pa.Table], name: str, buckets: int) -> BucketWork:
    """Count the values in the lists of a column, by bucket."""
    work = np.zeros(buckets)
    for table in tables:
        if table.num_rows:
            lengths = pc.fill_null(pc.list_value_length(table.column(name)), 0).to_numpy()
            bucket = table.column("bucket").to_numpy()
            work += np.bincount(bucket, weights=lengths, minlength=buckets)
    return work


class Laps:
    """Measures CPU time by bucket, of work that is done for one bucket after the other."""

    def __init__(self, clock: Clock, buckets: int) -> None:
        self._clock = clock
        self._seconds = [0.0] * buckets
        self._last = 0.0

    def start(self) -> None:
        """Start the clock; the time before belongs to no bucket."""
        self._last = self._clock.cpu()

    def lap(self, bucket: int) -> None:
        """Add the time since the last call to this bucket."""
        now = self._clock.cpu()
        self._seconds[bucket] += now - self._last
        self._last = now

    def work(self) -> BucketWork:
        return np.array(self._seconds)


def packed(work: BucketWork | None, mapping: Mapping, instance: int) -> bytes:
    """The work of the instance's own buckets, ascending, four bytes each; empty for None."""
    if work is None:
        return b""
    return bytes(work[mapping.owner_array == instance].astype(_TRAVELS).tobytes())


def divided(
    cpu_s: Sequence[float], even_s: float, data: Sequence[bytes], mapping: Mapping
) -> npt.NDArray[np.float64]:
    """Divide the CPU seconds of each instance among its buckets.

    `cpu_s` is divided in proportion to the work that the instance packed; evenly where it packed
    nothing, or only zeros. `even_s` of each instance is always divided evenly.
    """
    owners, instances = mapping.owner_array, mapping.instances
    counts = np.bincount(owners, minlength=instances)
    work = np.empty(mapping.buckets)
    # Each instance packed its buckets in ascending order, which is that of a stable sort by owner.
    work[np.argsort(owners, kind="stable")] = np.concatenate(
        [
            np.frombuffer(one, _TRAVELS) if one else np.zeros(count)
            for one, count in zip(data, counts.tolist(), strict=True)
        ]
    )
    total = np.bincount(owners, weights=work, minlength=instances)
    idle = total == 0
    seconds, spread = np.asarray(cpu_s), np.maximum(counts, 1)
    each = np.where(idle, seconds + even_s, even_s) / spread
    rate = seconds / np.where(idle, np.inf, total)
    found: npt.NDArray[np.float64] = work * rate[owners] + each[owners]
    return found
