"""Reads the snapshots of a table of Iceberg: `iceberg:CATALOG?table=namespace.table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidegate.errors import SourceError, TidegateError
from tidegate.remote.disk import RemoteDisk
from tidegate.remote.lake.iceberg import IcebergPlace
from tidegate.remote.lake.uri import LakeUri
from tidegate.schema import normal_schema
from tidegate.source.lake.connector import LakeConnector
from tidegate.source.lake.log import EARLIEST, FROM, LATEST, Added, LakeLog, Start

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_EMPTY = "0"
"""The version of a table before its first snapshot."""


class IcebergLog(LakeLog):
    """The snapshots of a table's main branch."""

    pause_s = 1.0

    def __init__(self, place: IcebergPlace, where: str) -> None:
        self.where, self.id = where, f"iceberg:{place.table}"
        self._place = place
        table = self._table()
        with _told(where):
            self._check(table)
            self.schema = normal_schema(table.schema().as_arrow())
        self._io: Any = table.io

    def begin(self, start: Start) -> Added:
        table = self._table()
        with _told(self.where):
            newest = table.current_snapshot()
            if start.text == LATEST or newest is None:
                return Added(_version(newest), ())
            if start.text != EARLIEST:
                return self.since(self._before(table, start))
            entries = self._entries(table, newest.manifests(table.io))
            return Added(_version(newest), self._paths(entries))

    def since(self, version: str) -> Added:
        table = self._table()
        with _told(self.where):
            newest = table.current_snapshot()
            paths: list[str] = []
            for snapshot in self._after(table, newest, version):
                paths += self._added(table, snapshot)
            return Added(_version(newest), paths)

    def path(self, name: str) -> str:
        scheme, netloc, path = self._io.parse_location(name)
        if scheme == "file":
            return str(path)
        return RemoteDisk(self._io.fs_by_scheme(scheme, netloc), f"{scheme}://").path(name)

    def _table(self) -> Table:
        with _told(self.where):
            table = self._place.load()
        if table is None:
            remedy = "Check the catalog and the name of the table."
            raise SourceError(self.where, "the table must be there", self._place.root, remedy)
        return table

    def _check(self, table: Table) -> None:
        """Refuse renamed columns: files are read by the names they were written with."""
        numbers: dict[str, int] = {}
        for schema in table.metadata.schemas:
            for field in schema.fields:
                now = table.schema().find_column_name(field.field_id)
                if now not in (None, field.name) or numbers.get(field.name, field.field_id) != (
                    field.field_id
                ):
                    must = "columns must have the names that they had at first"
                    raise self._unusable(must, f"{field.name}, which is {now} now")
                numbers[field.name] = field.field_id

    def _after(self, table: Table, newest: Snapshot | None, version: str) -> Sequence[Snapshot]:
        """The snapshots after one, the oldest first."""
        found: list[Snapshot] = []
        at = newest
        while _version(at) != version:
            if at is None:
                got = "snapshots that have expired, or a table that was set back or made anew"
                raise self._forgotten(version, got)
            found.append(at)
            parent = at.parent_snapshot_id
            if str(parent) == version:  # found by its child, because it may have expired itself
                break
            at = None if parent is None else table.snapshot_by_id(parent)
        return found[::-1]

    def _before(self, table: Table, start: Start) -> str:
        """The version before the one with which a stream begins."""
        chain, at = [], table.current_snapshot()
        while at is not None:
            chain.append(at)
            parent = at.parent_snapshot_id
            at = None if parent is None else table.snapshot_by_id(parent)
        if start.version is not None:
            first = [s for s in chain if str(s.snapshot_id) == start.version]
            if not first:
                got = f"from={start.version}"
                remedy = f"There are: {', '.join(str(s.snapshot_id) for s in chain[:5])}."
                raise SourceError(self.where, "the snapshot must be there", got, remedy)
        else:
            first = [s for s in chain if s.timestamp_ms * 1000 >= start.time_us(self.where)]
        if not first:
            return _version(table.current_snapshot())
        parent = first[-1].parent_snapshot_id
        return _EMPTY if parent is None else str(parent)

    def _added(self, table: Table, snapshot: Snapshot) -> list[str]:
        operation = "append" if snapshot.summary is None else snapshot.summary.operation.value
        if operation == "replace":  # compaction: the same rows in other files
            return []
        if operation != "append":
            raise self._removes(str(snapshot.snapshot_id), operation)
        id_ = snapshot.snapshot_id
        own = [m for m in snapshot.manifests(table.io) if m.added_snapshot_id == id_]
        return self._paths([e for e in self._entries(table, own) if e.snapshot_id == id_])

    def _entries(self, table: Table, manifests: Sequence[Any]) -> list[ManifestEntry]:
        """The live data files of manifests; refuses delete files and other formats."""
        found: list[ManifestEntry] = []
        for manifest in manifests:
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            for entry in entries:
                file = entry.data_file
                if file.content.value != 0 or file.file_format.value != "PARQUET":
                    must = "it must be made of Parquet files without deleted rows"
                    raise self._unusable(must, f"{file.file_path}")
            found += entries
        return found

    def _paths(self, entries: Sequence[ManifestEntry]) -> list[str]:
        keys = sorted((e.sequence_number or 0, e.data_file.file_path) for e in entries)
        return [self.path(path) for _, path in keys]


class IcebergSource(LakeConnector):
    """A table of Iceberg as a stream, or as a table that streams are joined to."""

    title = "Iceberg"

    @staticmethod
    def log_at(uri: LakeUri) -> IcebergLog:
        return IcebergLog(IcebergPlace.of(uri, (FROM,)), uri.where)


def _version(snapshot: Snapshot | None) -> str:
    return _EMPTY if snapshot is None else str(snapshot.snapshot_id)


@contextmanager
def _told(where: str) -> Iterator[None]:
    try:
        yield
    except TidegateError:
        raise
    except Exception as error:  # catalogs raise those of their databases and servers
        said = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        remedy = "Check the catalog and the access to it."
        raise SourceError(where, "the table must be readable", said, remedy) from error
