"""Holds the tables of a process: each version and lookup once, whatever tasks come for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.state.handle import StoreHandle

FOLDER = "table"
"""Where a checkpoint has the versions of tables."""
_MOST = 64
_indexes: OrderedDict[tuple[str, TableLookup], TableIndex] = OrderedDict()
"""Those that this process has used last: a few for each query that runs in it."""


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
        key = (version.digest, lookup)
        if key not in _indexes:
            _indexes[key] = TableIndex(lookup, self.rows(version))
            if len(_indexes) > _MOST:
                _indexes.popitem(last=False)
        _indexes.move_to_end(key)
        return _indexes[key]

    def rows(self, version: TableVersion) -> pa.Table:
        """The rows of a version; mapped where the checkpoint is on this host."""
        return from_bytes(self.store.open().files.buffer(version.file))
