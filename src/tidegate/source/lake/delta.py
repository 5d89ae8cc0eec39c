"""Reads the log of a table of Delta Lake: `delta:PATH`, `delta+s3://bucket/path`.

The library gives the table's state at a version. What later versions add is read from their entries
in the log, one small file each. To look for a next version costs one request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from tidegate.errors import RunError, SourceError
from tidegate.remote.disk import remote_path
from tidegate.remote.lake.delta import LOG, DeltaPlace
from tidegate.remote.lake.uri import LakeUri
from tidegate.schema import normal_schema
from tidegate.source.lake.connector import LakeConnector
from tidegate.source.lake.log import EARLIEST, FROM, LATEST, Added, LakeLog, Start
from tidegate.source.mark import readable
from tidegate.source.partition import Constants, Partitions
from tidegate.storage import disk

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOCAL_S, _REMOTE_S = 0.05, 1.0


class DeltaLog(LakeLog):
    """The log of a table of Delta Lake."""

    def __init__(self, place: DeltaPlace, where: str) -> None:
        self.where, self.id = where, f"delta:{place.root}"
        self._place = place
        self._root = remote_path(place.uri) if place.remote else place.uri
        self.pause_s = _REMOTE_S if place.remote else _LOCAL_S
        self._checked = False
        table = self._table()
        self._check(table)
        self._fields = pa.schema(table.schema().to_arrow())
        self.schema = normal_schema(self._fields)
        own = [self.schema.field(name) for name in table.metadata().partition_columns]
        self._partitions = Partitions(str(self._root), pa.schema(own))

    def begin(self, start: Start) -> Added:
        table = self._table()
        if start.text == LATEST:
            return Added(str(table.version()), ())
        if start.text != EARLIEST:
            return self.since(str(self._first(table, start) - 1))
        found = pa.table(table.get_add_actions()).select(["modification_time", "path"])
        rows = sorted((r["modification_time"], r["path"]) for r in found.to_pylist())
        return Added(str(table.version()), [self._named(path) for _, path in rows])

    def since(self, version: str) -> Added:
        paths: list[str] = []
        at = int(version)
        while (entry := self._entry(at + 1)) is not None:
            at += 1
            paths += self._added(at, entry)
        if at == int(version) and at < 0:
            raise self._forgotten("0", "none so old")
        if not paths and at == int(version):
            self._check_newest(at)
        return Added(str(at), paths)

    def path(self, name: str) -> str:
        if isinstance(self._root, disk.RemotePath):
            return disk.RemotePath(name, self._root.disk)
        return name

    def constants(self, path: str) -> Constants:
        return self._partitions.constants(path, self.where) if self._partitions.names else ()

    def _table(self) -> DeltaTable:
        with _told(self.where):
            table = self._place.table()
        if table is None:
            remedy = "Check the path; a table has a folder _delta_log."
            raise SourceError(self.where, "must be a table of Delta Lake", "none", remedy)
        return table

    def _check(self, table: DeltaTable) -> None:
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            must = "columns must be named in its files as in the table"
            raise self._unusable(must, f"column mapping by {mapping}")
        features = table.protocol().reader_features or []
        if "deletionVectors" in features and len(self._vectors()):
            must = "its files must hold no deleted rows"
            raise self._unusable(must, "deletion vectors")

    def _vectors(self) -> list[Any]:
        with _told(self.where):
            return list(self._table().deletion_vectors())

    def _first(self, table: DeltaTable, start: Start) -> int:
        """The version with which a stream begins."""
        newest = table.version()
        if start.version is not None:
            first = int(start.version)
        else:
            time_ms = start.time_us(self.where) / 1000
            with _told(self.where):
                later = [h for h in table.history() if int(h["timestamp"]) >= time_ms]
            first = min((int(h["version"]) for h in later), default=newest + 1)
        if first > newest + 1:
            got, remedy = f"from={first}", f"The newest is {newest}."
            raise SourceError(self.where, "the version must be there", got, remedy)
        if first <= newest and self._entry(first) is None:
            raise self._forgotten(str(first), "none so old")
        return first

    def _check_newest(self, version: int) -> None:
        """Check, once, that the next version is missing because nobody committed it.

        A log that was cleaned up lacks it as well, and would look like a table without news.
        """
        if self._checked:
            return
        self._checked = True
        newest = self._table().version()
        if newest > version and self._entry(version + 1) is None:
            raise self._forgotten(str(version + 1), f"version {newest} as the next one")

    def _entry(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of a version; None where the log does not have it."""
        place = self.path(f"{self._root}/{LOG}/{version:020d}.json")
        try:
            with readable(place):
                text = disk.read(place).decode()
        except (SourceError, RunError) as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def _added(self, version: int, actions: list[dict[str, Any]]) -> list[str]:
        """The files that a version has added; refuses one that changes or removes rows."""
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        adds = [a["add"] for a in actions if "add" in a and a["add"]["dataChange"]]
        gone = [a for a in actions if "remove" in a and a["remove"].get("dataChange", True)]
        if gone or any(a.get("deletionVector") for a in adds):
            operation = str(info.get("operation", "a change of rows"))
            raise self._removes(str(version), operation)
        for action in actions:
            if "metaData" in action and version > 0:
                self._check_columns(version, json.loads(action["metaData"]["schemaString"]))
        found = sorted((a["modificationTime"], a["path"]) for a in adds)
        return [self._named(path) for _, path in found]

    def _check_columns(self, version: int, schema: dict[str, Any]) -> None:
        """Refuse a change of the schema that removes columns we read; others may be added."""
        names = {field["name"] for field in schema["fields"]}
        lost = [name for name in self.schema.names if name not in names]
        if lost:
            raise self._removes(str(version), f"without column {', '.join(lost)}")

    def _named(self, path: str) -> str:
        if "://" in path or path.startswith("/"):
            must = "its files must be in its own folder"
            raise self._unusable(must, path)
        return self.path(f"{self._root}/{unquote(path)}")


class DeltaSource(LakeConnector):
    """A table of Delta Lake as a stream, or as a table that streams are joined to."""

    title = "Delta Lake"

    @staticmethod
    def log_at(uri: LakeUri) -> DeltaLog:
        return DeltaLog(DeltaPlace.of(uri, (FROM,)), uri.where)


@contextmanager
def _told(where: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        got = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = "Check the path and the access to it."
        raise SourceError(where, "the table must be readable", got, remedy) from error
