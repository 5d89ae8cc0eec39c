"""Holds the tables of a running query: the rows of each, and the event time from which they apply.

The rows are kept in files of the checkpoint, and the manifest of a batch says which files it used.
So a restart has the same rows, even if the table has changed where it was read from.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from tidegate.batch import MIN_US
from tidegate.clock import Clock, utc_now
from tidegate.driver.table_capture import (
    KeyedCapture,
    TableRecord,
    WholeCapture,
    capture,
    version_of,
    with_keys,
)
from tidegate.errors import CheckpointError, StateError, TidegateError
from tidegate.operate.table_join.table_versions import FOLDER, DealtVersion, TableVersion
from tidegate.plan.physical import Plan
from tidegate.plan.table.use import TableLimit, TableRoom, table_uses, whole_first
from tidegate.query.table import TableContent, TableDef
from tidegate.state.epoch import time_of
from tidegate.state.manifest import Manifest
from tidegate.state.name import owned
from tidegate.state.store import Store

_log = logging.getLogger(__name__)

MOST_TOLD = 8
"""The versions of a table that a manifest lists; only the newest has its rows."""


class Tables:
    """The current version of each table, and its latest versions for people.

    Tasks hold the tables that fit into a limit together, and read the others by key.
    """

    def __init__(self, plan: Plan, store: Store, clock: Clock, limit: TableLimit) -> None:
        self._tables = plan.tables
        self._uses = table_uses(plan)
        self._store = store
        self._clock = clock
        self._limit = limit
        self._room = TableRoom(limit)
        self._held: dict[str, tuple[TableRecord, ...]] = {}
        self._read_at: dict[str, float] = {}

    def enter(self, manifest: Manifest) -> None:
        """Take over the tables in a manifest, and read those it lacks; before the first batch."""
        batch = manifest.batch + 1
        for table in self._tables:
            if table.name in manifest.tables:
                self._check(table, manifest.tables[table.name][-1])
                self._hold(table, manifest.tables[table.name], batch)
        for table in whole_first(self._tables, self._uses):
            if table.name not in manifest.tables:
                first = self._kept(table, self._read(table, batch), batch, MIN_US)
                self._held[table.name] = (first,)

    def repeat(self, after: Manifest) -> None:
        """Take over the tables of a batch that runs again; does not read the tables."""
        for table in self._tables:
            records = tuple(after.tables[table.name])
            if self._held.get(table.name) != records:
                self._hold(table, records, after.batch)

    def _hold(self, table: TableDef, records: Sequence[TableRecord], batch: int) -> None:
        *older, newest = records
        use, stem = self._uses[table.name], self._stem(batch, newest["digest"])
        newest = with_keys(newest, use, self._store, stem, self._limit)
        self._held[table.name] = (*older, newest)
        if "file" in newest:
            self._room.hold(table.name, use, newest["rows"], newest["bytes"])

    def refresh(self, batch: int, from_us: int) -> None:
        """Read the tables again whose time has come; called before a batch.

        New rows apply to tuples from `from_us` on: to all of this batch and of later ones. A table
        that cannot be read keeps its rows until the next time.
        """
        for table in self._tables:
            every_us, now = table.refresh_us, self._clock.now()
            if every_us is None or (now - self._read_at[table.name]) * 1e6 < every_us:
                continue
            try:
                content = self._read(table, batch)
            except StateError:
                raise
            except TidegateError as error:
                _log.warning("%s cannot be read again: %s. Its rows stay.", table.where, error)
                continue
            held = self._held[table.name]
            if content.digest != held[-1]["digest"]:
                added = self._kept(table, content, batch, from_us)
                self._held[table.name] = (*held, added)[-MOST_TOLD:]

    def versions(self, names: Collection[str]) -> dict[str, TableVersion | DealtVersion]:
        """The current versions of some tables, for the tasks of the next batch."""
        return {name: version_of(held[-1]) for name, held in self._held.items() if name in names}

    def recorded(self) -> dict[str, list[TableRecord]]:
        """The tables' part of the next manifest."""
        return {name: list(held) for name, held in self._held.items()}

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the checkpoint that have their rows."""
        return tuple(file for held in self._held.values() for file in version_of(held[-1]).files)

    def _kept(
        self, table: TableDef, content: WholeCapture | KeyedCapture, batch: int, from_us: int
    ) -> TableRecord:
        """Keep what was read of a table in the checkpoint."""
        self._store.files.make(FOLDER)
        where = content.keep(self._store, self._stem(batch, content.digest))
        _log.info("%s: %d rows, %d bytes read", table.where, where["rows"], where["bytes"])
        return {
            "digest": content.digest,
            **where,
            "from_us": from_us,
            "read": time_of(utc_now()),
        }

    def _stem(self, batch: int, digest: str) -> str:
        return f"{FOLDER}/{owned(batch, self._store.owner)}-{digest[:16]}"

    def _read(self, table: TableDef, batch: int) -> WholeCapture | KeyedCapture:
        self._read_at[table.name] = self._clock.now()
        use, name = self._uses[table.name], f"{owned(batch, self._store.owner)}-{FOLDER}"
        return capture(self._room.read(table, use), use, self._store, name, self._limit)

    def _check(self, table: TableDef, newest: TableRecord) -> None:
        """Tell where a table is not what it was, and refuse one that has other columns.

        One by key is not read for it.
        """
        kept = version_of(newest).schema(self._store)
        for field in table.schema:
            if field.name not in kept.names or kept.field(field.name).type != field.type:
                raise CheckpointError(
                    self._store.location,
                    f"has {table.where} with the columns {', '.join(kept.names)} of its first run",
                    f"another column {field.name} in {', '.join(table.uris) or 'the rows given'}",
                    "Run with another --checkpoint to use the new columns.",
                )
        self._read_at[table.name] = self._clock.now()
        if "by_key" in newest:
            self._uses[table.name].check_by_key(table, self._limit)
        if table.refresh_us is not None or "by_key" in newest:
            return
        try:
            content = table.read()
        except TidegateError as error:
            _log.warning("%s cannot be read: %s. %s", table.where, error, _GOES_ON)
            return
        if not isinstance(content, TableContent) or content.digest != newest["digest"]:
            told = (table.where, newest["read"], _GOES_ON)
            _log.warning("%s has changed since it was read at %s. %s", *told)


_GOES_ON = "The run goes on with the rows of its checkpoint; begin another one to use the new rows."
