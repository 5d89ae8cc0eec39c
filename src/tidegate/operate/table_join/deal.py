"""Divides the rows of a large table into parts by the hashes of its keys, in bounded memory.

It is an external sort. Rows are gathered into runs; each run is sorted by the hashes of a key and
spilled. When all rows are there, the parts are written one by one, from what each run has for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidegate.batch import write_table
from tidegate.cancellation import between_pieces
from tidegate.operate.kernels.order import Ints
from tidegate.operate.spill import Spill
from tidegate.operate.table_join.key import TableKey
from tidegate.operate.table_join.table_parts import DealtTable, PartRows, bounds_of_parts
from tidegate.state.store import Store

MOST_BITS = 8
"""There are at most two to this power parts, because each manifest names all of them."""

RUNS, PARTS = 4, 16
"""A run is a RUNS-th, and a part about a PARTS-th, of the size that a task may hold whole."""


@dataclass
class Dealing:
    """Takes the rows of a table and writes them once for each of some keys.

    `whole_bytes` is the size up to which tasks hold a table whole. A run has a quarter of it and is
    in memory twice while it is sorted; later one part at a time is in memory, with all rows of its
    keys. Call `add` for all rows, then `write` once.
    """

    store: Store
    keys: Sequence[TableKey]
    name: str
    whole_bytes: int
    rows: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
    _held: list[tuple[pa.Table, Ints]] = field(default_factory=list, init=False)
    _held_bytes: int = field(default=0, init=False)
    _runs: list[list[PartRows]] = field(default_factory=list, init=False)

    def add(self, rows: pa.Table, places: Ints | None = None) -> None:
        """Take rows; they follow the earlier ones, or have `places` in the table."""
        if places is None:
            places = np.arange(self.rows, self.rows + rows.num_rows)
        self._held.append((rows, places))
        self.rows += rows.num_rows
        self.bytes += rows.nbytes
        self._held_bytes += rows.nbytes
        # Sorting takes a run's size once more, so a run is a quarter of what a task may hold.
        if self._held_bytes >= self.whole_bytes // RUNS:
            self._spill()

    def write(self, stem: str) -> dict[str, DealtTable]:
        """Write the files of the table, and return them by the names of its keys."""
        self._spill()
        size = max(self.whole_bytes // PARTS, 1)
        bits = min(max(self.bytes // size, 1).bit_length() - 1, MOST_BITS)
        made = {}
        for number, key in enumerate(self.keys):
            made[key.name] = dealt = DealtTable(f"{stem}-{key.name}", bits)
            runs = [run[number] for run in self._runs]
            bounds = [bounds_of_parts(run.hashes, bits) for run in runs]
            for part, file in enumerate(dealt.files):
                pieces = [
                    run.table.slice(ends[part], ends[part + 1] - ends[part])
                    for run, ends in zip(runs, bounds, strict=True)
                ]
                rows = PartRows(pa.concat_tables(pieces))
                between_pieces(rows.table.num_rows)
                with self.store.files.create(file) as out:
                    write_table(_sorted(rows), out)
        return made

    def _spill(self) -> None:
        """Spill the rows in memory as one run for each key."""
        if not self._held:
            return
        table = pa.concat_tables([rows for rows, _ in self._held])
        places = np.concatenate([places for _, places in self._held])
        self._held, self._held_bytes = [], 0
        run = []
        for number, key in enumerate(self.keys):
            cells = [pa.array(key.hashes(table)), pa.array(places), *table.columns]
            names = ["hash", "place", *table.column_names]
            spill = Spill(self.store, f"{self.name}-{len(self._runs)}-{number}", most_bytes=0)
            try:
                spill.add(_sorted(PartRows(pa.table(cells, names=names))))
                run.append(PartRows(spill.table()))
            finally:
                spill.drop()
        self._runs.append(run)


def _sorted(rows: PartRows) -> pa.Table:
    """Rows by hash and place, in one piece."""
    order = pa.array(np.lexsort((rows.places, rows.hashes)))
    return rows.table.take(order).combine_chunks()
