"""Reads a table and keeps what was read in the checkpoint: whole, or by the keys of its joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.operate.table_join.deal import Dealing
from tidegate.operate.table_join.table_parts import DealtTable, rows_of_part
from tidegate.operate.table_join.table_versions import DealtVersion, TableVersion
from tidegate.plan.table.use import TableLimit, TableUse
from tidegate.query.table import LargeTable, TableContent
from tidegate.state.store import Store

TableRecord = Mapping[str, Any]
"""One version in the manifest: `digest`, `from_us`, `rows`, `bytes`, `read`, and `file` with all
rows; or `by_key` with the beginning of the names of a key's files, and the bits of their number."""


@dataclass(frozen=True)
class WholeCapture:
    """What was read of a table that tasks hold."""

    content: TableContent

    @property
    def digest(self) -> str:
        return self.content.digest

    def keep(self, store: Store, stem: str) -> dict[str, Any]:
        """Write it, and say in the record where."""
        file = f"{stem}.arrow"
        store.write(file, self.content.data)
        return {"file": file, "rows": self.content.rows, "bytes": self.content.bytes}


@dataclass(frozen=True)
class KeyedCapture:
    """What was read of a larger table, and lies sorted in files without names."""

    digest: str
    dealing: Dealing

    def keep(self, store: Store, stem: str) -> dict[str, Any]:
        """Write it by its keys, and say in the record where."""
        by_key = {name: list(dealt) for name, dealt in self.dealing.write(stem).items()}
        return {"by_key": by_key, "rows": self.dealing.rows, "bytes": self.dealing.bytes}


def capture(
    content: TableContent | LargeTable, use: TableUse, store: Store, name: str, limit: TableLimit
) -> WholeCapture | KeyedCapture:
    """What was read of a table; one that is too large to be held is dealt by the keys of its joins.

    `name` is for files that are gone when the process is.
    """
    if not isinstance(content, LargeTable):
        return WholeCapture(content)
    dealing = Dealing(store, use.keys, name, limit.held_bytes)
    for part in content.parts():
        dealing.add(part)
    return KeyedCapture(content.digest, dealing)


def with_keys(
    record: TableRecord, use: TableUse, store: Store, stem: str, limit: TableLimit
) -> TableRecord:
    """A version with files for all keys, after the query was changed; its rows stay the same."""
    known = record.get("by_key")
    wanted = [key for key in use.keys if known is not None and key.name not in known]
    if known is None or not wanted:
        return record
    dealing = Dealing(store, wanted, stem.rpartition("/")[2], limit.held_bytes)
    for file in DealtTable(*next(iter(known.values()))).files:
        part = rows_of_part(store, file)
        dealing.add(part.rows, part.places)
    more = {name: list(dealt) for name, dealt in dealing.write(stem).items()}
    return {**record, "by_key": {**known, **more}}


def version_of(record: TableRecord) -> TableVersion | DealtVersion:
    """What tasks are told of a version."""
    if "file" in record:
        return TableVersion(record["digest"], record["file"])
    by_key = record["by_key"].items()
    return DealtVersion(record["digest"], tuple((name, DealtTable(*of)) for name, of in by_key))
