"""Rows of a table by the hashes of a key, in parts that are files of the checkpoint.

The first bits of a hash say in which part its rows are. A part has them in the order of hashes, and
those of one hash as the table has them. A lookup takes the rows out that its tuples may meet, and
no others: it holds those and, where the checkpoint is elsewhere, the parts that caches have room
for. Parts on this host are mapped.
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
from tidegate.state.segment import keep_fetched
from tidegate.state.store import Store

HASH, PLACE, OWN = 0, 1, 2
"""The positions of a part's columns: hash of the key, place in the table, then those of it."""

FULL_BITS = 64


class DealtTable(NamedTuple):
    """A table by one key: how the names of its parts begin, and the bits of a part's number."""

    stem: str
    bits: int

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{self.stem}-{n:05d}.arrow" for n in range(1 << self.bits))

    def candidates(self, store: Store, lookup: TableLookup, tuples: pa.Table) -> pa.Table:
        """The rows whose keys have the hashes of tuples' keys, those of a key in the table's order.

        Costs a search for each distinct key, and a copy of the rows.
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
        """The parts that some sorted hashes are in, with those of each."""
        bounds = bounds_of_parts(hashes, self.bits)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            yield number, hashes[bounds[number] : bounds[number + 1]]


@dataclass(frozen=True)
class PartRows:
    """Rows by hash and place in the table: a part, or what is to be divided into parts."""

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
        """The columns of the table."""
        return self.table.select(range(OWN, self.table.num_columns))

    def search(self, wanted: Hashes) -> Ints:
        """The positions of rows that have one of some distinct hashes."""
        hashes = self.hashes
        first = np.searchsorted(hashes, wanted)
        first, wanted = first[first < len(hashes)], wanted[first < len(hashes)]
        first, wanted = first[hashes[first] == wanted], wanted[hashes[first] == wanted]
        counts = np.searchsorted(hashes, wanted, side="right") - first
        return expanded(first, first, counts)[1]

    def columns(self, names: list[str], positions: Ints) -> pa.Table:
        """Some columns of some rows, after their places in the table."""
        own, at = self.rows, pa.array(positions)
        cells = [self.table.column(PLACE), *(own.column(name) for name in names)]
        return pa.table([c.take(at) for c in cells], names=["", *names])


def bounds_of_parts(hashes: Hashes, bits: int) -> Ints:
    """Where each part begins in sorted hashes, and the end of the last."""
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(FULL_BITS - bits if bits else 0)
    return np.append(np.searchsorted(hashes, starts), len(hashes))


def rows_of_part(store: Store, file: str) -> PartRows:
    """A part that was written; what others have fetched on this host is not fetched again."""
    files = store.files
    if files.local:
        return PartRows(from_bytes(files.buffer(file)))
    return PartRows(from_bytes(keep_fetched(files.full(file), lambda: files.buffer(file))))
