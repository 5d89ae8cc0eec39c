"""Holds the tables of a process: each version and lookup once, whatever tasks come for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.join import HeldVersion
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.state.handle import StoreHandle

FOLDER = "table"
"""Where a checkpoint has the versions of tables."""
_MOST = 64
_indexes: OrderedDict[tuple[str, TableLookup], TableIndex] = OrderedDict()
"""Those that this process has used last: a few for each query that runs in it."""


class TableVersion(NamedTuple):
    """What was read of a table, by the digest of its bytes; for tuples from `from_us` on."""

    digest: str
    from_us: int
    file: str
    """Its name in the checkpoint."""


@dataclass(frozen=True)
class HeldTables:
    """The tables of a job; they are read from the checkpoint when they are first asked for."""

    tables: Mapping[str, Sequence[TableVersion]]
    store: StoreHandle

    def versions(self, lookup: TableLookup) -> list[HeldVersion]:
        """The versions of a lookup's table, the oldest first."""
        return [
            HeldVersion(version.from_us, self._index(version, lookup))
            for version in self.tables[lookup.table]
        ]

    def _index(self, version: TableVersion, lookup: TableLookup) -> TableIndex:
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
