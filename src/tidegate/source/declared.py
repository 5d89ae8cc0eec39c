"""Declared columns beside those of a file, between what a stream promises and what is there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.errors import SourceError, likely
from tidegate.schema import TIME, type_name

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT = {pa.float32(): (pa.int8(), pa.int16()), pa.float64(): (pa.int8(), pa.int16(), pa.int32())}
"""Whole numbers that floats hold without loss."""


def spelling(name: str, names: Sequence[str]) -> str | None:
    """How a file spells a column; SQL does not tell cases apart where that leaves one."""
    if name in names:
        return name
    alike = [n for n in names if n.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def matched(declared: Sequence[str], names: Sequence[str], where: str) -> tuple[str, ...]:
    """A file's names, those of declared columns as they were declared; refuses absent ones."""
    found = {spelling(name, names): name for name in declared}
    if None in found:
        raise absent(found[None], names, where)
    return tuple(found.get(name, name) for name in names)


def absent(name: str, names: Sequence[str], where: str) -> SourceError:
    """What to say of a declared column that a file does not have."""
    has = f"The file has {', '.join(names)}."
    return SourceError(
        where,
        "declared columns must be in the file",
        f"no column {name}",
        f"{likely(name, names)} {has}".lstrip(),
    )


def check_fits(declared: pa.Schema, found: pa.Schema, where: str) -> None:
    """Refuse a file with types in which declared columns cannot be had without loss."""
    for field in declared:
        name = spelling(field.name, found.names)
        if name is None:
            raise absent(field.name, found.names, where)
        type_ = found.field(name).type
        if not lossless(type_, field.type):
            raise SourceError(
                where,
                f"column {field.name} was declared {type_name(field.type).upper()}, and must be "
                "of a type that this holds without loss",
                type_name(type_),
                f"Declare it {type_name(type_).upper()}, and use CAST in the query.",
            )


def lossless(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether each value of a type is one of another type, too."""
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
