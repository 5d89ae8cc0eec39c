"""Holds the tables of a process: the newest version for each lookup, whatever tasks come for it.

Every batch needs them, so they are no part of the caches' budget: what a cache lets go of would be
built again in each batch. How large they may be together is decided when they are read
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
from tidegate.operate.table_join.dealt import DealtTable, rows_of_part
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.key import key_of
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.state.handle import StoreHandle
from tidegate.state.store import Store

T = TypeVar("T")

FOLDER = "table"
"""Where a checkpoint has the versions of tables."""


MOST_HELD = 64
"""So many uses of tables a process holds, of all queries that it runs tasks for."""

_HELD = Memory(sys.maxsize).cache(1, size=lambda held: 0, most_entries=MOST_HELD)
"""By checkpoint and use the digest of a version, and what was built of it."""

LIMIT.release.append(_HELD.clear)


class TableVersion(NamedTuple):
    """What was read of a table, by the digest of its bytes, and the file that has it."""

    digest: str
    file: str

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    def schema(self, store: Store) -> pa.Schema:
        """The columns that were read."""
        return from_bytes(store.files.buffer(self.file)).schema

    def index_for(self, store: StoreHandle, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """The table, for a lookup of any tuples."""
        return self.held(store, lookup, partial(TableIndex, lookup))

    def held(self, store: StoreHandle, use: Hashable, build: Callable[[pa.Table], T]) -> T:
        """What is built of the rows for one use of them, once in this process; they are mapped
        where the checkpoint is on this host."""

        def load() -> tuple[str, T]:
            return self.digest, build(from_bytes(store.open().files.buffer(self.file)))

        place = store.location, use
        held = _HELD.get(place, load)
        if held[0] != self.digest:  # of before the table was read again, or of after
            held = load()
            _HELD.put(place, held)
        return held[1]


class DealtVersion(NamedTuple):
    """What was read of a large table, by its digest; where its rows are, by the name of a key."""

    digest: str
    by_key: tuple[tuple[str, DealtTable], ...]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file for _, dealt in self.by_key for file in dealt.files)

    def schema(self, store: Store) -> pa.Schema:
        """The columns that were read."""
        return rows_of_part(store, self.files[0]).rows.schema

    def index_for(self, store: StoreHandle, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """The rows of the table that some tuples may meet."""
        key = key_of(lookup)
        assert key is not None  # else the table was refused before
        dealt = dict(self.by_key)[key.name]
        return TableIndex(lookup, dealt.candidates(store.open(), lookup, tuples))


@dataclass(frozen=True)
class HeldTables:
    """The tables of a job; they are read from the checkpoint when they are first asked for."""

    tables: Mapping[str, TableVersion | DealtVersion]
    store: StoreHandle

    def index(self, lookup: TableLookup, tuples: pa.Table) -> TableIndex:
        """The table of a lookup, or what some tuples need of it."""
        return self.tables[lookup.table].index_for(self.store, lookup, tuples)

    def held(self, table: str, use: Hashable, build: Callable[[pa.Table], T]) -> T:
        """What is built of the rows of a table for one use of it, once in this process."""
        version = self.tables[table]
        assert isinstance(version, TableVersion)  # a large one is refused before
        return version.held(self.store, use, build)
