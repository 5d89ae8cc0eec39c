"""Finds one schema for all files of a stream, and checks it against declared columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import SourceError, likely
from tidegate.schema import TIME, type_name

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT = {pa.float32(): (pa.int8(), pa.int16()), pa.float64(): (pa.int8(), pa.int16(), pa.int32())}
"""Whole numbers that floats hold without loss."""


@dataclass(frozen=True)
class FileShape:
    """Columns with their types, null where no value was seen yet, and the file that set them.

    With `loose`, files may lack columns (JSON). With `widens`, types were inferred from text: then
    whole numbers and fractions agree, and so do dates and timestamps.
    """

    schema: pa.Schema
    path: str
    loose: bool = False
    widens: bool = False

    def joined(self, other: pa.Schema, path: str, where: str) -> FileShape:
        """This shape with one more file; a SourceError where the file contradicts it."""
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
        return FileShape(pa.schema(fields), self.path, self.loose, self.widens)

    def lacks(self, other: pa.Schema) -> bool:
        """Whether one side lacks a column of the other, where files may not."""
        return not self.loose and set(self.schema.names) != set(other.names)

    def check(self, other: pa.Schema, path: str, where: str) -> None:
        """Refuse a later file that cannot be read in this shape."""
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


def settled(schema: pa.Schema) -> pa.Schema:
    """An inferred schema for reading: a column in which no value was seen is a string."""
    null = pa.types.is_null
    return pa.schema([(f.name, pa.string() if null(f.type) else f.type) for f in schema])


def check_distinct(names: Sequence[str], where: str, remedy: str = "Rename the columns.") -> None:
    """Refuse a file with a column's name twice."""
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SourceError(
            where, "column names must be distinct", f"{', '.join(twice)} more than once", remedy
        )


def spelling(name: str, names: Sequence[str]) -> str | None:
    """A file's spelling of a column: exact, or the only one that differs in case alone."""
    if name in names:
        return name
    alike = [n for n in names if n.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def matched(declared: Sequence[str], names: Sequence[str], where: str) -> tuple[str, ...]:
    """A file's names, with declared columns spelt as declared; refuses a column it lacks."""
    found = {spelling(name, names): name for name in declared}
    if None in found:
        raise absent(found[None], names, where)
    return tuple(found.get(name, name) for name in names)


def absent(name: str, names: Sequence[str], where: str) -> SourceError:
    """The error for a declared column that a file does not have."""
    has = f"The file has {', '.join(names)}."
    return SourceError(
        where,
        "declared columns must be in the file",
        f"no column {name}",
        f"{likely(name, names)} {has}".lstrip(),
    )


def check_fits(declared: pa.Schema, found: pa.Schema, where: str) -> None:
    """Refuse a file that lacks declared columns, or whose types they cannot hold without loss."""
    for field in declared:
        name = spelling(field.name, found.names)
        if name is None:
            raise absent(field.name, found.names, where)
        check_lossless(field, found.field(name).type, where)


def check_lossless(declared: pa.Field, found: pa.DataType, where: str, within: str = "") -> None:
    """Refuse a declared type that cannot hold all values of the type that was found."""
    if not lossless(found, declared.type):
        raise SourceError(
            where,
            f"column {declared.name} was declared {type_name(declared.type).upper()}, and must be "
            "of a type that this holds without loss",
            f"{type_name(found)}{within}",
            f"Declare it {type_name(found).upper()}, and use CAST in the query.",
        )


def lossless(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether every value of one type is also a value of another."""
    if of == to or pa.types.is_null(of):
        return True
    if to in _DIGITS:
        return of in _DIGITS and _DIGITS[of] < _DIGITS[to]
    if to in _EXACT:
        return of in _EXACT[to] or (of == pa.float32() and to == pa.float64())
    if pa.types.is_decimal(to):
        whole = to.precision - to.scale
        if pa.types.is_decimal(of):
            return bool(of.scale <= to.scale and of.precision - of.scale <= whole)
        return of in _DIGITS and _DIGITS[of] <= whole
    if pa.types.is_list(to):
        return bool(pa.types.is_list(of)) and lossless(of.value_type, to.value_type)
    return bool(to == TIME and of == pa.date32())
