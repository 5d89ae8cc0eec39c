"""Reads columns from the names of folders, as `day=2024-01-31/`: constants of the files inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tidegate.connector import OuterReader, Reader, Rows
from tidegate.errors import SourceError
from tidegate.schema import a_type
from tidegate.source.text.cell import has_codes
from tidegate.source.text.dialect import USUAL

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in a folder's name that stands for NULL."""

Constants = tuple[tuple[str, Any], ...]
"""Columns that have one value in all rows of a file."""

_FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Partitions:
    """The columns that the folders below `root` give, with their types; the same for all files."""

    root: str
    schema: pa.Schema

    @staticmethod
    def of(root: str, files: Sequence[str], declared: pa.Schema | None, where: str) -> Partitions:
        """The columns from the folders between a root and its present files.

        Types are the declared ones, or inferred: whole numbers if all values are, then dates, then
        texts. Refuses files in folders of other names.
        """
        found = [values_of(file, root) for file in files]
        names = list(found[0]) if found else []
        for file, values in zip(files, found, strict=True):
            _check_names(names, file, values, where)
        fields = []
        for name in names:
            if declared is not None and name in declared.names:
                fields.append(declared.field(name))
            else:
                fields.append(pa.field(name, _inferred(v[name] for v in found)))
        partitions = Partitions(root, pa.schema(fields))
        for file in files:
            partitions.constants(file, where)
        return partitions

    @property
    def names(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    def constants(self, file: str, where: str) -> Constants:
        """The values of one file; refuses a folder whose value does not have the type."""
        values = values_of(file, self.root)
        _check_names(self.names, file, values, where)
        return tuple((f.name, _value(file, f, values[f.name], where)) for f in self.schema)

    def check_time(self, time: str, where: str) -> None:
        """Refuse a time column from folders: it would be the same for all rows of a file."""
        if time in self.names:
            raise SourceError(
                where,
                "the time must be a column of the files themselves",
                f"{time}, which the names of folders give",
                "Name another column, which tells the times of rows.",
            )

    def without(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a schema that come from the files themselves."""
        return pa.schema([f for f in schema if f.name not in self.names])

    def with_own(self, schema: pa.Schema) -> pa.Schema:
        """The columns of files, then those of folders."""
        return pa.schema([*self.without(schema), *self.schema])


@dataclass(frozen=True)
class PartitionReader(OuterReader):
    """Adds the constants from folders to what a file's reader gives."""

    schema: pa.Schema
    constants: Constants

    def read(self, columns: Sequence[str]) -> Rows:
        values = dict(self.constants)
        rows = self.inner.read([c for c in columns if c not in values])
        found = []
        for name in columns:
            if name not in values:
                found.append(rows.table.column(name))
                continue
            value = pa.scalar(values[name], self.schema.field(name).type)
            found.append(pa.chunked_array([pa.repeat(value, len(rows.seq))]))
        asked = pa.schema([self.schema.field(c) for c in columns])
        return Rows(pa.table(found, schema=asked), rows.seq, rows.rejects)


def with_constants(reader: Reader, schema: pa.Schema, constants: Constants) -> Reader:
    """The reader with constants added; the same reader where there are none."""
    if not constants:
        return reader
    return PartitionReader(reader, reader.start, reader.stop, schema, constants)


def without_constants(schema: pa.Schema, constants: Constants) -> pa.Schema:
    """The columns that are in a file."""
    given = {name for name, _ in constants}
    return pa.schema([f for f in schema if f.name not in given]) if given else schema


def values_of(file: str, root: str) -> dict[str, str | None]:
    """The values in the names of the folders between a root and a file."""
    found: dict[str, str | None] = {}
    for folder in file.removeprefix(root).split("/")[:-1]:
        named = _FOLDER.fullmatch(folder)
        if named:
            value = unquote(named[2])
            found[unquote(named[1])] = None if value in (NULL, "") else value
    return found


def _inferred(values: Iterable[str | None]) -> pa.DataType:
    cells = pa.array([v for v in values if v is not None], pa.string())
    if not len(cells) or has_codes(cells):
        return pa.string()
    for type_ in (pa.int64(), pa.date32()):
        if not USUAL.convert(cells, type_).null_count:
            return type_
    return pa.string()


def _value(file: str, field: pa.Field, value: str | None, where: str) -> Any:
    if value is None:
        return None
    found = _converted(value, field.type)
    if found is None:
        raise SourceError(
            where,
            f"column {field.name}, which folders give, must be {a_type(field.type)}",
            f"{field.name}={value} in {file}",
            f"Rename the folder, or declare {field.name} STRING.",
        )
    return found


@lru_cache(maxsize=10_000)
def _converted(value: str, type_: pa.DataType) -> Any:
    """A folder's value in a type, None where it does not fit; cached, since many files share it."""
    (found,) = USUAL.convert(pa.array([value]), type_).to_pylist()
    return found


def _check_names(names: Sequence[str], file: str, values: Iterable[str], where: str) -> None:
    found = list(values)
    if list(names) != found:
        raise SourceError(
            where,
            "all files must be in folders of the same names",
            f"{_folders(names)} and, for {file}, {_folders(found)}",
            "Move it, or name the files that are meant with a glob.",
        )


def _folders(names: Sequence[str]) -> str:
    return "".join(f"{name}=.../" for name in names) or "no name=value"
