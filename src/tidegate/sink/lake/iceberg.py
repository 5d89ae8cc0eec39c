"""Results as a table of Iceberg: `iceberg:CATALOG?table=namespace.table`.

A batch is one snapshot, whose summary records the batch and the owner of the checkpoint. The same
commit records both in the properties of the table too, because snapshots expire. The library must
not rebase a commit onto one that came first: we look at that one before we try again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from tidegate.errors import OptionError
from tidegate.remote.folder import DataFolder
from tidegate.remote.lake.iceberg import IcebergFiles, IcebergPlace
from tidegate.sink.address import Address
from tidegate.sink.lake.sink import APPEND, LakeSink, lake_uri, may_append
from tidegate.sink.lake.table import (
    MAKER,
    NOTHING,
    AddedFile,
    ConflictError,
    LakeError,
    LakeFiles,
    LakeTable,
    TableState,
)
from tidegate.storage import disk

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction

_RETRIES = "commit.retry.num-retries"


@dataclass(frozen=True)
class IcebergDataFiles(LakeFiles):
    """All data files, those of side tables too, are below the folder of the table of results."""

    files: IcebergFiles
    location: str
    """The same folder, as the table writes its location."""

    def folder(self, side: str) -> DataFolder:
        return self.files.folder()

    def sides(self) -> Sequence[str]:
        return ()


class IcebergTarget(LakeTable):
    """A table of Iceberg. Holds its metadata: grows with its snapshots until they expire."""

    def __init__(self, place: IcebergPlace, main: IcebergPlace, writer: str) -> None:
        self._place, self._main = place, main
        self.where, self.writer = place.root, writer
        self._table: Table | None = None

    def look(self) -> TableState | None:
        with _told():
            self._table = self._place.load()
            if self._table is None:
                return None
            properties = self._table.properties
            spec, schema = self._table.spec(), self._table.schema()
            return TableState(
                schema=schema.as_arrow(),
                batch=int(properties.get(self._name("batch"), NOTHING)),
                owner=int(properties.get(self._name("owner"), NOTHING)),
                maker=properties.get(MAKER, ""),
                partitioned=[schema.find_column_name(f.source_id) or "" for f in spec.fields],
            )

    def converted(self, schema: pa.Schema) -> Schema:
        from pyiceberg.catalog import Catalog

        return Catalog._convert_schema_if_needed(schema)

    def create(self, schema: pa.Schema) -> None:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        with _told():
            catalog = self._place.load_catalog()
            namespace = self._place.table.rpartition(".")[0]
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(namespace)
            with suppress(TableAlreadyExistsError):
                made = {MAKER: self.writer}
                catalog.create_table(self._place.table, schema, properties=made)

    def add_columns(self, schema: pa.Schema) -> None:
        with _told():
            assert self._table is not None, "a table is looked at first"
            with self._table.update_schema() as update:
                update.union_by_name(self.converted(schema))

    def files(self) -> IcebergDataFiles:
        table = self._table if self._place == self._main else self._main.load()
        assert table is not None, "a table is looked at first"
        return IcebergDataFiles(IcebergFiles.of(table), table.location().rstrip("/"))

    def commit(self, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        table = self._table
        assert table is not None, "a table is looked at first"
        data = self.files()
        said = {"owner": owner} if batch is None else {"owner": owner, "batch": batch}
        summary = {f"tidegate.{name}": str(number) for name, number in said.items()}
        with _told():
            # Changes only this copy in memory. With retries the library would put our commit after
            # one that we have not seen, perhaps of a later owner or of the very same batch.
            table.metadata.properties[_RETRIES] = "0"
            change = table.transaction()
            change.set_properties({self._name(n): str(number) for n, number in said.items()})
            self._append(change, [f"{data.location}/{f.name}" for f in files], summary)
            change.commit_transaction()
        if data.files.fs is None:
            _sync(table)

    def _append(self, change: Transaction, paths: list[str], summary: dict[str, str]) -> None:
        summary = {MAKER: self.writer, **summary}
        if paths:
            change.add_files(paths, summary, check_duplicate_files=False)
        else:  # a snapshot without files: a commit based on an older one conflicts with it
            with change.update_snapshot(snapshot_properties=summary).fast_append():
                pass

    def _name(self, what: str) -> str:
        return f"tidegate.{self.writer}.{what}"


class IcebergSink(LakeSink):
    """Results as a table of Iceberg, by its catalog."""

    def __init__(
        self, place: IcebergPlace, output: str | None = None, append: bool = False
    ) -> None:
        main = place.beside(f"_{output}" if output else "")

        def table(writer: str, side: str) -> IcebergTarget:
            own = place.beside(side.replace("/", "_")) if side else main
            return IcebergTarget(own, main, writer)

        super().__init__(main.named, table, append)
        self._base = place.root

    @property
    def side_places(self) -> dict[str, str]:
        """Where late and rejected rows are, for the summary of a run."""
        return {
            "late": f"are in {self._base}_late_STREAM, a table for each stream",
            "rejected": f"are in {self._base}_rejected",
        }

    @staticmethod
    def at(address: Address, output: str | None) -> IcebergSink:
        """The sink of a table; an output with a name has the table with that name added."""
        place = IcebergPlace.of(lake_uri(address), (APPEND,))
        return IcebergSink(place, output, may_append(address))


def _sync(table: Table) -> None:
    """Sync the metadata of the newest snapshot in a local folder; the library does not."""
    snapshot = table.current_snapshot()
    written = [table.metadata_location]
    if snapshot is not None:
        id_ = snapshot.snapshot_id
        own = [m for m in snapshot.manifests(table.io) if m.added_snapshot_id == id_]
        written += [snapshot.manifest_list, *(manifest.manifest_path for manifest in own)]
    for location in written:
        path = unquote(urlsplit(location).path)
        disk.current().sync_file(path)
        disk.current().sync_folder(os.path.dirname(path))


@contextmanager
def _told() -> Iterator[None]:
    """Turn the errors of the library into those of `LakeTable`."""
    from pyiceberg.exceptions import CommitFailedException

    try:
        yield
    except CommitFailedException as error:
        raise ConflictError(str(error)) from error
    except (ConflictError, OptionError):
        raise
    except Exception as error:  # catalogs raise those of their databases and servers
        said = (str(error).splitlines() or [""])[0]
        raise LakeError(f"{type(error).__name__}: {said}") from error
