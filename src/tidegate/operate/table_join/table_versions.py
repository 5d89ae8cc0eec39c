"""Holds tables in the memory of a process: the newest version for each lookup, for all its tasks.

They are outside the budget of caches. Every batch needs all of them, so a table that a cache let go
of would be built again in each batch. How large they may be together is decided when they are read
(`plan.table_use`). A version that is too large is searched in the files of the checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.memory import Memory
from tidegate.memory_limit import LIMIT
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.key import key_of
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.operate.table_join.table_parts import DealtTable, rows_of_part
from tidegate.state.handle import StoreHandle
from tidegate.state.store import Store

T = TypeVar("T")

FOLDER = "table"
"""The folder of a checkpoint with the versions of tables."""

MOST_HELD = 64
"""A process holds at most so many uses of tables, of all queries whose tasks it runs."""

_HELD = Memory(sys.maxsize).cache(1, size=lambda held: 0, most_entries=MOST_HELD)
"""By checkpoint and use: the digest of a version, and what was built from it."""

LIMIT.release.append(_HELD.clear)


class TableVersion(NamedTuple):
    """A version of a table: the digest of its bytes, and the file that has it."""

    digest: str
    file: str

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    def schema(self, store: Store) -> pa.Schema:
        """The schema of the columns that were read."""
        return from_bytes(store.files.buffer(self.file)).schema

    def index_for(self, store: StoreHandle, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """The index of the whole table; it does not depend on the tuples."""
        return self.held(store, lookup, partial(TableIndex, lookup))

    def held(self, store: StoreHandle, use: Hashable, build: Callable[[pa.Table], T]) -> T:
        """What `build` makes of the rows for one use, made once in this process.

        The rows are mapped where the checkpoint is on this host.
        """

        def load() -> tuple[str, T]:
            return self.digest, build(from_bytes(store.open().files.buffer(self.file)))

        place = store.location, use
        held = _HELD.get(place, load)
        # Tasks of two batches may run side by side, on either side of a new version.
        if held[0] != self.digest:
            held = load()
            _HELD.put(place, held)
        return held[1]


class DealtVersion(NamedTuple):
    """A version of a large table: its digest, and its parts by the name of each key."""

    digest: str
    by_key: tuple[tuple[str, DealtTable], ...]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file for _, dealt in self.by_key for file in dealt.files)

    def schema(self, store: Store) -> pa.Schema:
        """The schema of the columns that were read."""
        return rows_of_part(store, self.files[0]).rows.schema

    def index_for(self, store: StoreHandle, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """An index of the rows that these tuples may meet, made for them."""
        key = key_of(lookup)
        assert key is not None, "a large table without a key is refused when the query starts"
        dealt = dict(self.by_key)[key.name]
        return TableIndex(lookup, dealt.candidates(store.open(), lookup, tuples))


@dataclass(frozen=True)
class HeldTables:
    """The tables of a job, read from the checkpoint when they are first asked for."""

    tables: Mapping[str, TableVersion | DealtVersion]
    store: StoreHandle

    def index(self, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """The index for a lookup: of the whole table, or of the rows that the tuples may meet."""
        return self.tables[lookup.table].index_for(self.store, lookup, tuples)

    def held(self, table: str, use: Hashable, build: Callable[[pa.Table], T]) -> T:
        """What `build` makes of a table, once in this process for one use; not of a large one."""
        version = self.tables[table]
        assert isinstance(version, TableVersion), "a large table is refused for such a use"
        return version.held(self.store, use, build)
