"""Holds the tables of a process: each version and lookup once, whatever tasks come for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.memory import MEMORY
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.state.handle import StoreHandle

T = TypeVar("T")

FOLDER = "table"
"""Where a checkpoint has the versions of tables."""


def _nbytes(index: Any) -> int:
    return int(index.nbytes)


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
        return self.held(lookup.table, lookup, partial(TableIndex, lookup))

    def held(self, table: str, use: Hashable, build: Callable[[pa.Table], T]) -> T:
        """What is built of the rows of a table for one use of it, once in this process."""
        version = self.tables[table]
        return _INDEXES.get((version.digest, use), lambda: build(self.rows(version)))

    def rows(self, version: TableVersion) -> pa.Table:
        """The rows of a version; mapped where the checkpoint is on this host."""
        return from_bytes(self.store.open().files.buffer(version.file))
