"""Looks up rows of a large table, which is divided by the hashes of a key into files.

The files are the **parts** of the table; the first bits of a hash name the part. A part has its
rows in the order of hashes, and those of one hash in the order of the table. A lookup copies the
rows that its tuples may meet, and no others. Parts on this host are mapped; parts of a remote
checkpoint are kept in caches as far as these have room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.cancellation import between_pieces
from tidegate.operate.kernels.order import Ints
from tidegate.operate.table_join.candidate import expanded
from tidegate.operate.table_join.key import hashes_of_tuples
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.route.bucket import Hashes
from tidegate.state.segment.segment import keep_fetched
from tidegate.state.store import Store

HASH, PLACE, OWN = 0, 1, 2
"""The positions of a part's columns: hash of the key, place in the table, then those of it."""

FULL_BITS = 64


class DealtTable(NamedTuple):
    """A table divided by one key: the stem of the names of its parts, and 2**`bits` parts."""

    stem: str
    bits: int

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{self.stem}-{n:05d}.arrow" for n in range(1 << self.bits))

    def candidates(self, store: Store, lookup: TableLookup, tuples: pa.Table) -> pa.Table:
        """The rows whose keys have the hash of some tuple's key; rows of a key in table order.

        Costs a search for each distinct key of the tuples, and a copy of the rows found.
        """
        hashes = hashes_of_tuples(lookup, tuples)
        names = [column for _, column in lookup.reads]
        names += [] if lookup.valid_from in (None, *names) else [str(lookup.valid_from)]
        found = []
        for number, wanted in self._by_part(hashes):
            part = rows_of_part(store, self.files[number])
            rows = part.search(wanted)
            if len(rows):
                between_pieces(len(rows))
                found.append(part.columns(names, rows))
        if not found:
            return rows_of_part(store, self.files[0]).columns(names, np.empty(0, np.int64))
        return pa.concat_tables(found)

    def _by_part(self, hashes: Hashes) -> Iterator[tuple[int, Hashes]]:
        """The parts that have some of the hashes, which are sorted, with the hashes of each."""
        bounds = bounds_of_parts(hashes, self.bits)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            yield number, hashes[bounds[number] : bounds[number + 1]]


@dataclass(frozen=True)
class PartRows:
    """Rows with the hash of their key and their place in the table: a part, or a run."""

    table: pa.Table

    @property
    def hashes(self) -> Hashes:
        found: Hashes = self.table.column(HASH).to_numpy()
        return found

    @property
    def places(self) -> Ints:
        found: Ints = self.table.column(PLACE).to_numpy()
        return found

    @property
    def rows(self) -> pa.Table:
        """The columns of the table itself."""
        return self.table.select(range(OWN, self.table.num_columns))

    def search(self, wanted: Hashes) -> Ints:
        """The positions of the rows with any of some hashes, which are distinct and ascend."""
        hashes = self.hashes
        first = np.searchsorted(hashes, wanted)
        first, wanted = first[first < len(hashes)], wanted[first < len(hashes)]
        first, wanted = first[hashes[first] == wanted], wanted[hashes[first] == wanted]
        counts = np.searchsorted(hashes, wanted, side="right") - first
        return expanded(first, first, counts)[1]

    def columns(self, names: list[str], positions: Ints) -> pa.Table:
        """Some columns of some rows; the first column, without a name, has their places."""
        own, at = self.rows, pa.array(positions)
        cells = [self.table.column(PLACE), *(own.column(name) for name in names)]
        return pa.table([c.take(at) for c in cells], names=["", *names])


def bounds_of_parts(hashes: Hashes, bits: int) -> Ints:
    """Where each part begins among sorted hashes, and where the last one ends."""
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(FULL_BITS - bits if bits else 0)
    return np.append(np.searchsorted(hashes, starts), len(hashes))


def rows_of_part(store: Store, file: str) -> PartRows:
    """A part from its file; what another process of this host has fetched is not fetched again."""
    files = store.files
    if files.local:
        return PartRows(from_bytes(files.buffer(file)))
    return PartRows(from_bytes(keep_fetched(files.full(file), lambda: files.buffer(file))))
