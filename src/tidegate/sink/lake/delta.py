"""Results as a table of Delta Lake: `delta:PATH`, `delta+s3://bucket/path`.

A batch is one entry of the log. It lists the files, and records the batch and the owner of the
checkpoint as application transactions of Delta's protocol.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.clock import utc_now
from tidegate.remote.folder import DataFolder
from tidegate.remote.lake.delta import LOG, DeltaPlace
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
    from deltalake import DeltaTable


@dataclass(frozen=True)
class DeltaFiles(LakeFiles):
    """Data files are below the folder of their table; side tables have folders in `base`."""

    main: DeltaPlace
    base: DeltaPlace

    def folder(self, side: str) -> DataFolder:
        return self.base.below(side).folder() if side else self.main.folder()

    def sides(self) -> Sequence[str]:
        folder = self.base.folder()
        late = [f"_late/{name}" for name in folder.folders("_late")]
        return [*late, *(name for name in folder.folders("") if name == "_rejected")]


class DeltaTarget(LakeTable):
    """A table of Delta Lake. Holds the list of its files: grows until somebody compacts them."""

    def __init__(self, place: DeltaPlace, files: DeltaFiles, writer: str) -> None:
        self._place, self._files = place, files
        self.where, self.writer = f"delta:{place.root}", f"tidegate/{writer}"
        self._table: DeltaTable | None = None

    def look(self) -> TableState | None:
        with _told():
            if self._table is None:
                self._table = self._place.table()
            else:
                self._table.update_incremental()
            if self._table is None:
                return None
            metadata = self._table.metadata()
            batch = self._table.transaction_version(self.writer)
            owner = self._table.transaction_version(self._owner_id)
            return TableState(
                schema=pa.schema(self._table.schema().to_arrow()),
                batch=NOTHING if batch is None else batch,
                owner=NOTHING if owner is None else owner,
                maker=metadata.configuration.get(MAKER, "").removeprefix("tidegate/"),
                partitioned=metadata.partition_columns,
            )

    def converted(self, schema: pa.Schema) -> Any:
        from deltalake import Schema

        return Schema.from_arrow(schema)

    def create(self, schema: pa.Schema) -> None:
        from deltalake import DeltaTable

        with _told():
            DeltaTable.create(
                self._place.location,
                schema=schema,
                mode="ignore",
                configuration={MAKER: self.writer},
                storage_options=self._place.options(),
                raise_if_key_not_exists=False,
            )
        self._sync()

    def add_columns(self, schema: pa.Schema) -> None:
        with _told():
            assert self._table is not None, "a table is looked at first"
            fields = self.converted(schema).fields
            self._table.alter.add_columns(fields, commit_properties=self._says())
        self._sync()

    def files(self) -> DeltaFiles:
        return self._files

    def commit(self, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        from deltalake.transaction import AddAction

        now_ms = int(utc_now().timestamp() * 1000)
        adds = [AddAction(f.name, f.bytes, {}, now_ms, True, _stats(f)) for f in files]
        with _told():
            assert self._table is not None, "a table is looked at first"
            self._table.create_write_transaction(
                list(adds),
                "append",
                self._table.schema(),
                [],
                commit_properties=self._says(batch, owner),
            )
        self._sync()

    def _says(self, batch: int | None = None, owner: int | None = None) -> Any:
        """The batch and the owner that a commit records; Delta refuses one that others of the same
        writer came before."""
        from deltalake import CommitProperties, Transaction

        said = [(self.writer, batch), (self._owner_id, owner)]
        return CommitProperties(
            app_transactions=[Transaction(name, n) for name, n in said if n is not None]
        )

    @property
    def _owner_id(self) -> str:
        return f"{self.writer}/owner"

    def _sync(self) -> None:
        """Sync the newest entry of the log in a local folder; the library does not."""
        if self._place.remote:
            return
        log = os.path.join(self._place.uri, LOG)
        newest = max(n for n in disk.current().names(log) if n.endswith(".json"))
        disk.current().sync_file(os.path.join(log, newest))
        disk.current().sync_folder(log)


class DeltaSink(LakeSink):
    """Results as a table of Delta Lake in a folder or on S3."""

    def __init__(self, place: DeltaPlace, output: str | None = None, append: bool = False) -> None:
        files = DeltaFiles(place.below(output or ""), place)

        def table(writer: str, side: str) -> DeltaTarget:
            return DeltaTarget(place.below(side) if side else files.main, files, writer)

        super().__init__(files.main.named, table, append)

    @staticmethod
    def at(address: Address, output: str | None) -> DeltaSink:
        """The sink of a folder; an output with a name has a folder of its name in it."""
        return DeltaSink(DeltaPlace.of(lake_uri(address), (APPEND,)), output, may_append(address))


def _stats(file: AddedFile) -> str:
    """Statistics by which readers skip a file: of columns of times only, the usual filters."""
    found: dict[str, Any] = {"numRecords": file.rows}
    for name, place in (("minValues", 0), ("maxValues", 1)):
        if file.stats:
            found[name] = {column: span[place] for column, span in file.stats.items()}
    return json.dumps(found)


@contextmanager
def _told() -> Iterator[None]:
    """Turn the errors of the library into those of `LakeTable`."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(str(error)) from error
    except (DeltaError, OSError) as error:
        raise LakeError((str(error).splitlines() or [type(error).__name__])[0]) from error
