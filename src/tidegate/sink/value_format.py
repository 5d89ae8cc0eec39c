"""Formats values of results for people, in terminals and on pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar import era
from tidegate.sink.json import encoded


@dataclass(frozen=True)
class ShownColumn:
    """One column of an excerpt; a cell of None is NULL."""

    name: str
    numeric: bool
    cells: tuple[str | None, ...]


def first_rows_text(rows: pa.Table) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """A small table as text: the names of the columns, and the cells row by row."""
    columns = shown_columns(rows)
    return [c.name for c in columns], list(zip(*(c.cells for c in columns)))


def shown_columns(rows: pa.Table) -> tuple[ShownColumn, ...]:
    """All columns of a small table, as text."""
    return tuple(
        _column(field.name, rows.column(i).combine_chunks()) for i, field in enumerate(rows.schema)
    )


def _column(name: str, values: pa.Array) -> ShownColumn:
    type_ = values.type
    numeric = pa.types.is_integer(type_) or pa.types.is_decimal(type_)
    if pa.types.is_floating(type_):
        return ShownColumn(_printable(name), True, _floats(values.to_pylist()))
    if pa.types.is_timestamp(type_):
        return ShownColumn(_printable(name), False, _times(values))
    if pa.types.is_nested(type_) or pa.types.is_binary(type_):
        values = (
            pc.utf8_trim(encoded(values), '"') if pa.types.is_binary(type_) else encoded(values)
        )
    if pa.types.is_date(type_):
        values = pc.utf8_trim(encoded(values), '"')
    texts = values.cast(pa.string()).to_pylist()
    return ShownColumn(
        _printable(name), numeric, tuple(None if t is None else _printable(t) for t in texts)
    )


def _times(values: pa.Array) -> tuple[str | None, ...]:
    """Times in UTC, all with as many digits of a second as the one that needs most."""
    written = era.texts(_to_the_second, values.cast(pa.timestamp("us"))).to_pylist()
    kept = max((len(t.rstrip("0").rstrip(".")) for t in written if t is not None), default=0)
    return tuple(None if t is None else t[: max(kept, 19)] for t in written)


def _to_the_second(times: pa.Array) -> pa.Array:
    return pc.strftime(times, "%Y-%m-%d %H:%M:%S")


def _floats(values: Sequence[float | None]) -> tuple[str | None, ...]:
    """Format a column with one number of decimals: about four digits of its largest value.

    A value too small for that gets more decimals, to show three of its digits.
    """
    usual = [abs(v) for v in values if v is not None and (v == 0 or 1e-4 <= abs(v) < 1e15)]
    whole = all(v == int(v) for v in usual)
    decimals = 1 if whole else max(1, 4 - len(str(int(max(usual)))))
    return tuple(None if v is None else _float(v, decimals) for v in values)


def _float(value: float, decimals: int) -> str:
    size = abs(value)
    if not np.isfinite(value) or size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.4g}"
    if abs(round(size, decimals) - size) > 0.005 * size:
        decimals = max(2 - math.floor(math.log10(size)), decimals)
    return f"{value:,.{decimals}f}"


def _printable(text: str) -> str:
    """Text with unprintable characters, which could move the cursor, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
