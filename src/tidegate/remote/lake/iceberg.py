"""Finds tables of Iceberg in their catalogs, with the library `pyiceberg`.

A catalog is named in pyiceberg's configuration, or is an SQLite file. With an SQLite file the data
is in the folder `warehouse` beside it, or where the parameter of that name says.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pyarrow.fs import FileSystem

from tidegate.remote.disk import VARIABLES
from tidegate.remote.folder import DataFolder, TreeFolder
from tidegate.remote.lake.delta import STORE_PARAMETERS
from tidegate.remote.lake.local_folder import LocalFolder
from tidegate.remote.lake.uri import SQLITE, LakeUri, catalog_file
from tidegate.remote.object_uri import endpoint_said, object_place
from tidegate.remote.scheme import is_object_uri, refuse_keys
from tidegate.storage import disk

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

PARAMETERS = ("table", "name", "warehouse", *STORE_PARAMETERS)


@dataclass(frozen=True)
class IcebergPlace:
    """A table by its catalog and name; `path` is the catalog's SQLite file, "" if it has none."""

    catalog: str
    table: str
    path: str = ""
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def of(uri: LakeUri, own: Collection[str] = ()) -> IcebergPlace:
        """The table that a URI names; `own` are parameters that the caller reads."""
        uri.check_library("iceberg", "pyiceberg")
        uri.check_parameters((*own, *PARAMETERS))
        given = uri.parameters
        table = given.get("table", "")
        if "." not in table.strip("."):
            must = "must name a table with its namespace"
            example = f"Write iceberg:{uri.place or 'CATALOG'}?table=namespace.table."
            raise uri.refusal(must, table or "no table", example)
        path = catalog_file(uri.place)
        named = uri.place.removeprefix(SQLITE)
        if not named or "://" in named:
            must = "must name a catalog of pyiceberg's configuration, or an SQLite file"
            remedy = "Write iceberg:NAME?table=..., or iceberg:folder/catalog.db?table=...."
            raise uri.refusal(must, uri.place or "none", remedy)
        if not path:
            for name in ("name", "warehouse", *STORE_PARAMETERS):
                if name in given:
                    must = f"{name} is for a catalog in an SQLite file"
                    remedy = "Leave it out: pyiceberg's configuration says it."
                    raise uri.refusal(must, f"{name}={given[name]}", remedy)
            return IcebergPlace(uri.place, table)
        return IcebergPlace(given.get("name", "default"), table, path, _properties(uri, path))

    @property
    def root(self) -> str:
        """The table as messages name it."""
        return f"iceberg:{self.path or self.catalog}, table {self.table}"

    @property
    def named(self) -> str:
        """The URI of the table as queries write it, absolute and without keys."""
        place = quote(self.path) if self.path else self.catalog
        return f"iceberg:{place}?{urlencode({'table': self.table})}"

    def beside(self, ending: str) -> IcebergPlace:
        """The table of the same catalog whose name has this ending more."""
        return IcebergPlace(self.catalog, f"{self.table}{ending}", self.path, self.properties)

    def load_catalog(self) -> Catalog:
        """The catalog; creates a missing SQLite file. Raises whatever pyiceberg raises."""
        said = ((n, v) for n, v in os.environ.items() if n.startswith((*VARIABLES, "PYICEBERG_")))
        return _catalog(self.catalog, self.path, self.properties, tuple(sorted(said)))

    def load(self) -> Table | None:
        """The table as it is now; None where there is none. Creates nothing."""
        from pyiceberg.exceptions import NoSuchTableError

        if self.path and not disk.is_file(self.path):
            return None
        try:
            return self.load_catalog().load_table(self.table)
        except NoSuchTableError:
            return None


@dataclass(frozen=True)
class IcebergFiles:
    """Where the data files of a table are; picklable. `fs` gives access to a store elsewhere."""

    root: str
    fs: FileSystem | None = None

    @staticmethod
    def of(table: Table) -> IcebergFiles:
        scheme, netloc, path = _parsed(table)
        if scheme == "file":
            return IcebergFiles(path)
        io: Any = table.io
        return IcebergFiles(f"{scheme}://{path}", io.fs_by_scheme(scheme, netloc))

    def folder(self) -> DataFolder:
        if self.fs is None:
            return LocalFolder(self.root)
        return TreeFolder(self.fs, self.root.partition("://")[2], self.root)


def _parsed(table: Table) -> tuple[str, str, str]:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO.parse_location(table.location(), table.io.properties)


def _properties(uri: LakeUri, path: str) -> tuple[tuple[str, str], ...]:
    """The properties for opening a catalog in a file; keys come from the environment."""
    warehouse = uri.parameters.get("warehouse", "")
    said = {n: uri.parameters[n] for n in STORE_PARAMETERS if n in uri.parameters}
    if not is_object_uri(warehouse):
        if "://" in warehouse or said:
            must = "the warehouse must be a folder, or s3://bucket/path"
            remedy = "Name another one, or leave out what is said of a store."
            raise uri.refusal(must, warehouse or ", ".join(said), remedy)
        folder = os.path.abspath(warehouse or os.path.join(os.path.dirname(path), "warehouse"))
        return (("uri", f"{SQLITE}{path}"), ("warehouse", f"file://{folder}"))
    refuse_keys(warehouse, uri.where, uri.kind)
    config = object_place(f"{warehouse}?{urlencode(said)}" if said else warehouse).config
    endpoint = config.get("endpoint") or endpoint_said()
    found = {"uri": f"{SQLITE}{path}", "warehouse": warehouse.rstrip("/")}
    region = config.get("region") or os.environ.get("AWS_REGION")
    if endpoint:
        found |= {"s3.endpoint": str(endpoint), "s3.region": region or "us-east-1"}
    elif region:
        found["s3.region"] = region
    return tuple(found.items())


@lru_cache
def _catalog(
    name: str,
    path: str,
    properties: tuple[tuple[str, str], ...],
    environment: tuple[tuple[str, str], ...],
) -> Catalog:
    from pyiceberg.catalog import load_catalog

    if not path:
        return load_catalog(name)
    disk.make_folders(os.path.dirname(path))
    return load_catalog(name, type="sql", **dict(properties))
