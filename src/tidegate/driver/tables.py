"""Holds the tables of a running query: what was read of each, and from which event time it counts.

What a table was when it was read is a file of the checkpoint, and which one a batch has used is in
its manifest. So a restart has the same rows, whatever has become of the files they came from.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tidegate.batch import MIN_US, from_bytes
from tidegate.clock import Clock, utc_now
from tidegate.errors import CheckpointError, TidegateError
from tidegate.operate.table_join.held import FOLDER, TableVersion
from tidegate.query.table import TableContent, TableDef
from tidegate.state.epoch import time_of
from tidegate.state.manifest import Manifest
from tidegate.state.name import owned
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

TableRecord = Mapping[str, Any]
"""One version in the manifest: `digest`, `file`, `from_us`, `rows`, `bytes`, `read`."""


MOST_TOLD = 8
"""So many versions of a table the manifest tells of; it has the rows of the newest alone."""


class Tables:
    """What each table is for the next batch, with the newest versions of it for people."""

    def __init__(self, tables: Sequence[TableDef], store: Store, clock: Clock) -> None:
        self._tables = tables
        self._store = store
        self._clock = clock
        self._held: dict[str, tuple[TableRecord, ...]] = {}
        self._read_at: dict[str, float] = {}

    def enter(self, manifest: Manifest) -> None:
        """Before the first batch of a run: go on with what a manifest has, read what it has not."""
        for table in self._tables:
            recorded = manifest.tables.get(table.name)
            if recorded is None:
                first = self._kept(table, self._read(table), manifest.batch + 1, MIN_US)
                self._held[table.name] = (first,)
            else:
                self._held[table.name] = tuple(recorded)
                self._check(table, recorded[-1])

    def refresh(self, batch: int, from_us: int) -> None:
        """Before a batch: read tables again whose time has come; the new rows are for tuples from
        `from_us` on, which are all that this batch and later ones have.

        What cannot be read stays as it is until it is read next.
        """
        for table in self._tables:
            every_us, now = table.refresh_us, self._clock.now()
            if every_us is None or (now - self._read_at[table.name]) * 1e6 < every_us:
                continue
            try:
                content = self._read(table)
            except TidegateError as error:
                _log.warning("%s cannot be read again: %s. Its rows stay.", table.where, error)
                continue
            held = self._held[table.name]
            if content.digest != held[-1]["digest"]:
                added = self._kept(table, content, batch, from_us)
                self._held[table.name] = (*held, added)[-MOST_TOLD:]

    def versions(self, names: Collection[str]) -> dict[str, TableVersion]:
        """What the next batch has of some tables."""
        newest = {name: held[-1] for name, held in self._held.items() if name in names}
        return {name: TableVersion(v["digest"], v["file"]) for name, v in newest.items()}

    def recorded(self) -> dict[str, list[TableRecord]]:
        """What the next manifest says of them."""
        return {name: list(held) for name, held in self._held.items()}

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the checkpoint that have their rows."""
        return tuple(held[-1]["file"] for held in self._held.values())

    def _kept(
        self, table: TableDef, content: TableContent, batch: int, from_us: int
    ) -> TableRecord:
        """Keep what was read of a table in the checkpoint."""
        file = f"{FOLDER}/{owned(batch, self._store.owner)}-{content.digest[:16]}.arrow"
        self._store.files.make(FOLDER)
        self._store.write(file, content.data)
        size = len(content.data)
        _log.info("%s: %d rows, %d bytes read", table.where, content.rows, size)
        return {
            "digest": content.digest,
            "file": file,
            "from_us": from_us,
            "rows": content.rows,
            "bytes": size,
            "read": time_of(utc_now()),
        }

    def _read(self, table: TableDef) -> TableContent:
        self._read_at[table.name] = self._clock.now()
        return table.read()

    def _check(self, table: TableDef, newest: TableRecord) -> None:
        """Tell where a table is not what it was, and refuse one that has other columns."""
        kept = from_bytes(self._store.files.buffer(newest["file"])).schema
        for field in table.schema:
            if field.name not in kept.names or kept.field(field.name).type != field.type:
                raise CheckpointError(
                    self._store.location,
                    f"has {table.where} with the columns {', '.join(kept.names)} of its first run",
                    f"another column {field.name} in {', '.join(table.uris) or 'the rows given'}",
                    "Run with another --checkpoint to use the new columns.",
                )
        self._read_at[table.name] = self._clock.now()
        if table.refresh_us is not None:
            return
        try:
            changed = self._read(table).digest != newest["digest"]
        except TidegateError as error:
            _log.warning("%s cannot be read: %s. %s", table.where, error, _GOES_ON)
            return
        if changed:
            told = (table.where, newest["read"], _GOES_ON)
            _log.warning("%s has changed since it was read at %s. %s", *told)


_GOES_ON = "The run goes on with the rows of its checkpoint; begin another one to use the new rows."
