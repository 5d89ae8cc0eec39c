"""Tables of lakehouses in simulated courses, as sinks and as sources.

The library's calls to a table or its catalog are behind the boundary, and so is every operation of
the package on the folder of the table.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from sqlalchemy.exc import OperationalError

from tests.simulation.connector.boundary import KINDS, Boundary
from tests.simulation.connector.connector import (
    Connector,
    Found,
    SinkConnector,
    SourceConnector,
    plain,
)
from tests.simulation.connector.lake_disk import LakeDisk
from tests.sink.lake.place import DeltaLake, IcebergLake, Lake
from tidegate.sink.protocol import Sink
from tidegate.testing.simulation.world import World

OTHER = "z"
"""The route of rows that another writer adds."""


class OnLake(Connector):
    """What a table of a kind is, for sinks and sources."""

    kind: type[Lake]

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._numbers = itertools.count()

    def new_lake(self) -> Lake:
        """In a folder of its own."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return self.kind(folder)

    def disk(self, world: World) -> LakeDisk:
        return LakeDisk(world.schedule, f"{self.folder}/", self.boundary)

    @contextmanager
    def entered(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            self.patch(patch)
            yield

    @abstractmethod
    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """Put the boundary in front of the library."""


class DeltaWays:
    """Fails as the library and the store behind it do."""

    def refused(self) -> NoReturn:
        raise OSError("simulated: the store is away")

    def failed(self) -> NoReturn:
        raise DeltaError("simulated: an error of the store")

    def lost(self) -> NoReturn:
        raise DeltaError("simulated: operation timed out")


IN_MEMORY = (
    "metadata schema version transaction_version protocol get_add_actions file_uris alter"
).split()
"""What a table of Delta Lake answers without a look at the store; not `alter`, which is a group."""


class OnDelta(OnLake):
    kind = DeltaLake

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        boundary = self.boundary

        class CourseTable(DeltaTable):
            """A table whose methods are calls."""

            def __init__(self, *given: Any, **options: Any) -> None:
                begin = super().__init__
                boundary.call("delta open", lambda: begin(*given, **options), DeltaWays())

            def __getattribute__(self, name: str) -> Any:
                found = super().__getattribute__(name)
                if name.startswith("_") or name in IN_MEMORY or not callable(found):
                    return found
                return _called(boundary, f"delta {name}", found, DeltaWays())

            @classmethod
            def create(cls, *given: Any, **options: Any) -> DeltaTable:
                make = _called(boundary, "delta create", DeltaTable.create, DeltaWays())
                return make(*given, **options)  # type: ignore[no-any-return]

        patch.setattr(deltalake, "DeltaTable", CourseTable)


class CatalogWays:
    """Fails as a database under a catalog does, or a server in front of it."""

    def refused(self) -> NoReturn:
        raise OperationalError("simulated", None, Exception("the database is away"))

    def failed(self) -> NoReturn:
        raise OperationalError("simulated", None, Exception("an error of the database"))

    def lost(self) -> NoReturn:
        raise CommitStateUnknownException("simulated: no answer")


CATALOG = ("load_table", "create_namespace", "create_table", "commit_table")


class OnIceberg(OnLake):
    kind = IcebergLake

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        for name in CATALOG:
            real, ways = getattr(SqlCatalog, name), CatalogWays()
            patch.setattr(SqlCatalog, name, _called(self.boundary, f"catalog {name}", real, ways))


def _called(
    boundary: Boundary, name: str, function: Callable[..., Any], ways: Any
) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        return boundary.call(name, lambda: function(*given, **options), ways)

    return call


class LakeSinkCourses(OnLake, SinkConnector):
    """The sink of a table, which others write to as well."""

    kinds = KINDS

    def place(self) -> Lake:
        return self.new_lake()

    def sink(self, place: Lake) -> Sink:
        return place.sink()

    def read(self, world: World, place: Lake) -> Found:
        if not place.there():
            return {}
        own = [row for row in place.rows() if row["route"] != OTHER]
        late = place.table(LATE).sort_by("at").to_pylist() if self.has_late(place) else []
        return {
            "rows": [repr(plain(row)) for row in own],
            "late": [repr((row["at"], row["route"])) for row in late],
        }

    @abstractmethod
    def has_late(self, place: Lake) -> bool:
        """Whether there is a table of late rows."""

    def beside(self, place: Lake) -> None:
        if place.there():
            place.append(self.other(place.table().schema))

    def other(self, schema: pa.Schema) -> pa.Table:
        """A row of another writer."""
        values = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
        return pa.table(values | {"route": pa.array([OTHER], schema.field("route").type)}, schema)


LATE = "_late/rides"


class DeltaSinkCourses(OnDelta, LakeSinkCourses):
    """The sink of a table of Delta Lake."""

    def has_late(self, place: Lake) -> bool:
        return DeltaTable.is_deltatable(str(place.folder / "t" / LATE))


class IcebergSinkCourses(OnIceberg, LakeSinkCourses):
    """The sink of a table of Iceberg, whose catalog is an SQLite file."""

    def has_late(self, place: Lake) -> bool:
        assert isinstance(place, IcebergLake)
        return place.has(LATE)


class LakeSourceCourses(OnLake, SourceConnector):
    """A table as a stream, to which a commit adds rows between lives."""

    def new_place(self) -> Lake:
        return self.new_lake()

    def add(self, place: Lake, part: list[dict[str, Any]]) -> None:
        table = pa.Table.from_pylist(part)
        if place.there():
            place.append(table)
        else:
            self.make(place, table)

    @abstractmethod
    def make(self, place: Lake, table: pa.Table) -> None:
        """Make the table, with its first rows."""

    def uri(self, place: Lake) -> str:
        return place.uri


class DeltaSourceCourses(OnDelta, LakeSourceCourses):
    """A table of Delta Lake as a stream."""

    def make(self, place: Lake, table: pa.Table) -> None:
        place.append(table)


class IcebergSourceCourses(OnIceberg, LakeSourceCourses):
    """A table of Iceberg as a stream."""

    def make(self, place: Lake, table: pa.Table) -> None:
        assert isinstance(place, IcebergLake)
        place.make(table.schema)
        place.append(table)
