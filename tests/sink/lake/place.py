"""Tables for the tests of lakehouses: one of each kind, and what readers find in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from tidegate.sink.lake.sink import LakeSink
from tidegate.sink.registry import of


@dataclass(frozen=True)
class Lake(ABC):
    """A table `t` below a folder, as another program sees it."""

    folder: Path

    @property
    @abstractmethod
    def uri(self) -> str:
        """What Tidegate is told."""

    @abstractmethod
    def there(self) -> bool:
        """Whether there is a table."""

    @abstractmethod
    def table(self, name: str = "") -> pa.Table:
        """All rows as the library of the table reads them, in no order."""

    @abstractmethod
    def files(self) -> list[str]:
        """The data files that the table has, in the order of their names."""

    @abstractmethod
    def commits(self) -> int:
        """How many commits there are."""

    @abstractmethod
    def append(self, rows: pa.Table) -> None:
        """Add rows as another writer does."""

    @abstractmethod
    def delete(self, where: str) -> None:
        """Delete rows as another writer does."""

    def sink(self, more: str = "") -> LakeSink:
        found = of(self.uri + more)
        assert isinstance(found, LakeSink)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The output sequence, read as docs/lakehouse.md says: by file name, then row by row."""
        if not self.files():
            return []
        query = (
            "SELECT * EXCLUDE (filename, file_row_number) FROM read_parquet($files, filename=true, "
            "file_row_number=true, union_by_name=true) ORDER BY filename, file_row_number"
        )
        return duckdb.sql(query, params={"files": self.files()}).to_arrow_table().to_pylist()

    def staged(self) -> list[str]:
        """The data files in the folder, whether the table has them or not."""
        return sorted(str(path) for path in self.folder.rglob("data/**/*.parquet"))


class DeltaLake(Lake):
    @property
    def path(self) -> str:
        return str(self.folder / "t")

    @property
    def uri(self) -> str:
        return f"delta:{self.path}"

    def there(self) -> bool:
        return DeltaTable.is_deltatable(self.path)

    def table(self, name: str = "") -> pa.Table:
        return DeltaTable(f"{self.path}/{name}").to_pyarrow_table()

    def files(self) -> list[str]:
        return sorted(DeltaTable(self.path).file_uris())

    def commits(self) -> int:
        return DeltaTable(self.path).version()

    def append(self, rows: pa.Table) -> None:
        write_deltalake(self.path, rows, mode="append")

    def delete(self, where: str) -> None:
        DeltaTable(self.path).delete(where)


class IcebergLake(Lake):
    @property
    def uri(self) -> str:
        return f"iceberg:{self.folder}/catalog.db?table=ns.t"

    def load(self, name: str = "") -> Table:
        return self._catalog().load_table(f"ns.t{name.replace('/', '_')}")

    def has(self, name: str) -> bool:
        """Whether there is a table beside the first one."""
        return self._catalog().table_exists(f"ns.t{name.replace('/', '_')}")

    def make(self, schema: pa.Schema) -> None:
        """Make the table, as another program does."""
        catalog = self._catalog()
        catalog.create_namespace("ns")
        catalog.create_table("ns.t", schema)

    def _catalog(self) -> Catalog:
        return _opened(self.folder)

    def there(self) -> bool:
        return (self.folder / "catalog.db").exists() and self.has("")

    def table(self, name: str = "") -> pa.Table:
        return self.load(name).scan().to_arrow()

    def files(self) -> list[str]:
        tasks = self.load().scan().plan_files()
        return sorted(task.file.file_path.removeprefix("file://") for task in tasks)

    def commits(self) -> int:
        return len(self.load().metadata.snapshots)

    def append(self, rows: pa.Table) -> None:
        self.load().append(rows)

    def delete(self, where: str) -> None:
        self.load().delete(where)

    def sink(self, more: str = "") -> LakeSink:
        return super().sink(more.replace("?", "&"))


@lru_cache
def _opened(folder: Path) -> Catalog:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
    return load_catalog("default", type="sql", uri=uri, warehouse=warehouse)


KINDS = {"delta": DeltaLake, "iceberg": IcebergLake}


def parquet(path: Path, rows: pa.Table) -> Path:
    pq.write_table(rows, path)
    return path
