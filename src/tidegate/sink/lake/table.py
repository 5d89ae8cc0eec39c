"""The interface of lakehouse tables that results are added to; `delta` and `iceberg` implement it.

A table has a log, in which commits appear whole. Each of our commits adds files and, in the same
step, records their batch, their writer and the owner of the checkpoint. So the table itself tells
what is in it, even where the answer to a commit was lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.errors import OptionError
from tidegate.remote.folder import DataFolder
from tidegate.schema import normal_type, type_name

MAKER = "tidegate.checkpoint"
"""The property of a table that names the writer that created it."""

NOTHING = -1
"""The batch, and the owner, of a writer that has committed nothing."""


class ConflictError(Exception):
    """Another commit came first. Nothing of ours was added: look again, then try again."""


class LakeError(Exception):
    """A table cannot be read or committed to. A commit may have arrived all the same."""


@dataclass(frozen=True)
class TableState:
    """The state of a table: its columns, and the newest batch and owner of one writer.

    `maker` is the writer that created the table, "" where that was not Tidegate.
    """

    schema: pa.Schema
    batch: int = NOTHING
    owner: int = NOTHING
    maker: str = ""
    partitioned: Sequence[str] = ()


@dataclass(frozen=True)
class AddedFile:
    """A data file to add: its name below the folder, its size, and the ranges of its times."""

    name: str
    rows: int
    bytes: int
    stats: Mapping[str, Any]


class LakeFiles(ABC):
    """Where the data files of a table and its side tables are; small, because tasks get a copy."""

    @abstractmethod
    def folder(self, side: str) -> DataFolder:
        """The folder of a table's files; `side` is "" for the results."""

    @abstractmethod
    def sides(self) -> Sequence[str]:
        """The existing side tables that have a folder of their own."""


class LakeTable(ABC):
    """One table as one writer sees it. Calls raise LakeError where it cannot be reached."""

    where: str
    """The name in messages."""

    writer: str
    """Whose batches the commits record: the checkpoint and the output; see `LakeSink`."""

    @abstractmethod
    def look(self) -> TableState | None:
        """Read the state now; None where there is no table. Creates nothing."""

    @abstractmethod
    def converted(self, schema: pa.Schema) -> object:
        """Columns in the types of the format; raises any exception for a type it does not have."""

    def check_types(self, schema: pa.Schema) -> None:
        """Refuse, with an OptionError, columns of types that such a table does not have."""
        for field in schema:
            try:
                self.converted(pa.schema([field]))
            except Exception as error:  # the libraries raise plain ones
                raise OptionError(
                    self.where,
                    f"column {field.name} must have a type that the table's format has",
                    f"{field.type} ({str(error).splitlines()[0]})",
                    "Use CAST in the query.",
                ) from error

    @abstractmethod
    def create(self, schema: pa.Schema) -> None:
        """Create the table with nullable columns. Does nothing where one is there by now."""

    @abstractmethod
    def add_columns(self, schema: pa.Schema) -> None:
        """Add nullable columns; existing rows have NULL there. Raises ConflictError."""

    @abstractmethod
    def files(self) -> LakeFiles:
        """Where its data files are; illegal before the table exists."""

    @abstractmethod
    def commit(self, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        """Add files and record their batch and owner, in one durable step.

        Without a batch only the owner is recorded. The commit builds on the last `look`: it raises
        ConflictError where a commit of the same writer came since.
        """


def nullable(schema: pa.Schema) -> pa.Schema:
    """The same columns, each of which may be NULL."""
    return pa.schema([pa.field(f.name, f.type) for f in schema])


def columns_to_add(where: str, table: TableState, schema: pa.Schema) -> pa.Schema:
    """The columns of a query that a table lacks; refuses all other differences, by name."""
    there = {field.name: field for field in table.schema}
    others = [name for name in there if name not in schema.names]
    if others:
        raise OptionError(
            where,
            f"the query must give all columns of the table: {', '.join(there)}",
            f"none of the name {', '.join(others)}",
            f"Select it, or for example CAST(NULL AS {_sql(there[others[0]].type)}) AS "
            f"{others[0]}; or choose another table.",
        )
    for field in schema:
        own = there.get(field.name)
        if own is not None and not alike(own.type, field.type):
            raise OptionError(
                where,
                f"column {field.name} must be of the type it has in the table, "
                f"{type_name(normal_type(own.type))}",
                type_name(field.type),
                "Use CAST in the query, give the column another name with AS, or choose another "
                "table.",
            )
    return pa.schema([field for field in schema if field.name not in there])


def alike(table: pa.DataType, query: pa.DataType) -> bool:
    """Whether a column of a table can hold the values of a query's column.

    Names inside lists may differ. Whole numbers may be wider in the table: Iceberg has none below
    32 bits.
    """
    table, query = normal_type(table), normal_type(query)
    if pa.types.is_list(table) and pa.types.is_list(query):
        return alike(table.value_type, query.value_type)
    if pa.types.is_map(table) and pa.types.is_map(query):
        keys = alike(table.key_type, query.key_type)
        return keys and alike(table.item_type, query.item_type)
    if pa.types.is_struct(table) and pa.types.is_struct(query):
        pairs = [(f, query.field(i)) for i, f in enumerate(table)] if _same(table, query) else []
        return bool(pairs) and all(f.name == g.name and alike(f.type, g.type) for f, g in pairs)
    if pa.types.is_integer(table) and pa.types.is_integer(query):
        return bool(table == query or (query.bit_width < 32 == table.bit_width))
    return bool(table == query)


def _same(table: pa.StructType, query: pa.StructType) -> bool:
    return bool(table.num_fields == query.num_fields)


def _sql(type_: pa.DataType) -> str:
    return type_name(normal_type(type_)).upper()
