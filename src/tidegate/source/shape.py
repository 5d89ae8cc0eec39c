"""The one schema of several files, between what each file holds and what a stream promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import SourceError
from tidegate.schema import TIME, type_name


@dataclass(frozen=True)
class Shape:
    """Columns with their types, null where nothing is known yet, and the file that set them.

    `loose` says that columns may be absent from a file (JSON); `widens` that types were inferred
    from text, so that whole numbers go with fractions and dates with timestamps.
    """

    schema: pa.Schema
    path: str
    loose: bool = False
    widens: bool = False

    def joined(self, other: pa.Schema, path: str, where: str) -> Shape:
        """This shape with one more file in it; raises where the file contradicts it."""
        if other.equals(self.schema):
            return self
        fields = []
        for field in self.schema:
            if field.name in other.names:
                type_ = self._common(field.name, other.field(field.name).type, path, where)
                fields.append((field.name, type_))
            elif self.loose:
                fields.append((field.name, field.type))
            else:
                raise self._missing(field.name, path, self.path, other, where)
        for name in other.names:
            if name in self.schema.names:
                continue
            if not self.loose:
                raise self._missing(name, self.path, path, self.schema, where)
            fields.append((name, other.field(name).type))
        return Shape(pa.schema(fields), self.path, self.loose, self.widens)

    def lacks(self, other: pa.Schema) -> bool:
        """Whether columns are absent here or there, where that is not allowed."""
        return not self.loose and set(self.schema.names) != set(other.names)

    def settled(self) -> pa.Schema:
        """The schema for reading: a column in which no value was seen is a string."""
        return pa.schema(
            [(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in self.schema]
        )

    def check(self, other: pa.Schema, path: str, where: str) -> None:
        """Refuse a file that comes later and that cannot be read in this shape."""
        joined = self.joined(other, path, where).schema
        for field in self.schema:
            now = joined.field(field.name).type
            if now != field.type and not pa.types.is_null(field.type):
                raise self._differ(field.name, other.field(field.name).type, path, where)

    def _common(self, name: str, type_: pa.DataType, path: str, where: str) -> pa.DataType:
        mine = self.schema.field(name).type
        if mine == type_ or pa.types.is_null(type_):
            return mine
        if pa.types.is_null(mine):
            return type_
        if self.widens:
            if {str(mine), str(type_)} == {str(pa.date32()), str(TIME)}:
                return TIME
            try:
                pair = [pa.schema([(name, mine)]), pa.schema([(name, type_)])]
                return pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except pa.ArrowTypeError as error:
                raise self._differ(name, type_, path, where) from error
        raise self._differ(name, type_, path, where)

    def _differ(self, name: str, type_: pa.DataType, path: str, where: str) -> SourceError:
        mine = type_name(self.schema.field(name).type)
        return SourceError(
            where,
            f"column {name} must have one type in all files",
            f"{type_name(type_)} in {path} and {mine} in {self.path}",
            "Write the files with one schema, or read them as streams of their own.",
        )

    @staticmethod
    def _missing(name: str, path: str, other: str, has: pa.Schema, where: str) -> SourceError:
        return SourceError(
            where,
            "all files must have the same columns",
            f"{path} without column {name}, which {other} has",
            f"{path} has: {', '.join(has.names)}.",
        )


def check_distinct(names: Sequence[str], where: str, remedy: str = "Rename the columns.") -> None:
    """Refuse a file with a column's name twice."""
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SourceError(
            where, "column names must be distinct", f"{', '.join(twice)} more than once", remedy
        )
