"""Holds the tables of a process: each version and lookup once, whatever tasks come for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.memory import MEMORY
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.state.handle import StoreHandle

FOLDER = "table"
"""Where a checkpoint has the versions of tables."""


def _nbytes(index: TableIndex) -> int:
    return index.nbytes


_INDEXES = MEMORY.cache(1 / 8, _nbytes)


class TableVersion(NamedTuple):
    """What was read of a table, by the digest of its bytes, and the file that has it."""

    digest: str
    file: str


@dataclass(frozen=True)
class HeldTables:
    """The tables of a job; they are read from the checkpoint when they are first asked for."""

    tables: Mapping[str, TableVersion]
    store: StoreHandle

    def index(self, lookup: TableLookup) -> TableIndex:
        """The table of a lookup."""
        version = self.tables[lookup.table]
        load = partial(self._load, lookup, version)
        return _INDEXES.get((version.digest, lookup), load)

    def _load(self, lookup: TableLookup, version: TableVersion) -> TableIndex:
        return TableIndex(lookup, self.rows(version))

    def rows(self, version: TableVersion) -> pa.Table:
        """The rows of a version; mapped where the checkpoint is on this host."""
        return from_bytes(self.store.open().files.buffer(version.file))
