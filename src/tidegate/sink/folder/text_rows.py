"""Reads rows of CSV and JSON back, with the types that their columns had when they were written.

Each value comes back as it was: floats are written with as many digits as they need, and NULL stays
apart from the empty text. Maps do not: of several values of one key the writers keep the last.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import time, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tidegate.calendar.era import ERA_YEARS, era_length
from tidegate.calendar.microsecond import MICROSECOND
from tidegate.leaf import is_list
from tidegate.schema import a_type

_ROWS = 65_536
_MOST_BYTES = 2**31 - 1

_FAR = re.compile(r"([+-]?)(\d{4,})(-.*)")
_DURATION = re.compile(r"(?:(-?\d+) days?, )?(\d+):(\d\d):(\d\d)(?:\.(\d{6}))?")

Cells: TypeAlias = "pa.Array | list[Any]"
"""A column as it is in a file: texts of CSV, or values of JSON with numbers as texts."""


def read_text(data: bytes, format: str, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file of CSV or JSON; an ArrowInvalid says where it cannot have been written.

    Holds the rows of the file.
    """
    if not data:
        return
    names, cells = cells_of(data, format)
    if names != columns.names:
        raise pa.ArrowInvalid(f"columns {', '.join(names)}, not {', '.join(columns.names)}")
    read = [_column(values, field) for values, field in zip(cells, columns, strict=True)]
    yield from pa.table(read, names).to_batches(max_chunksize=_ROWS)


def cells_of(data: bytes, format: str) -> tuple[list[str], list[Cells]]:
    """The columns of a file that has rows, by their names, as they are in it."""
    try:
        return _READERS[format](data)
    except (ValueError, csv.Error) as error:
        raise pa.ArrowInvalid(str(error)) from error


def lossy_column(columns: pa.Schema) -> pa.Field | None:
    """The first column whose values CSV and JSON cannot give back; None where there is none."""
    return next((field for field in columns if _has_map(field.type)), None)


def _has_map(type_: pa.DataType) -> bool:
    parts = (type_.field(i).type for i in range(type_.num_fields))
    return bool(pa.types.is_map(type_)) or any(map(_has_map, parts))


def _csv(data: bytes) -> tuple[list[str], list[Cells]]:
    names = next(csv.reader(io.StringIO(data.decode())))
    found = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(
            column_names=names, skip_rows=1, block_size=min(len(data) + 1, _MOST_BYTES)
        ),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
        pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return names, [column.combine_chunks() for column in found.columns]


def _json(data: bytes) -> tuple[list[str], list[Cells]]:
    names: list[str] = []
    columns: list[list[Any]] = []
    for number, line in enumerate(data.decode().removesuffix("\n").split("\n")):
        row = _parsed(line)
        if not number:
            names, columns = [*row], [[] for _ in row]
        if not isinstance(row, dict) or [*row] != names:
            raise ValueError(f"row {number} has other members than the first")
        for column, value in zip(columns, row.values(), strict=True):
            column.append(value)
    return names, list(columns)


_READERS: dict[str, Callable[[bytes], tuple[list[str], list[Cells]]]] = {"csv": _csv, "json": _json}
TEXTS: Sequence[str] = tuple(_READERS)
"""The formats whose files do not say what types their columns have."""


def _parsed(text: str) -> Any:
    """A value of JSON, with its numbers as they are written."""
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)


def _column(cells: Cells, field: pa.Field) -> pa.Array:
    """A column of a file; an ArrowInvalid names its first row that cannot have been written."""
    try:
        return _values(cells, field.type)
    except (ValueError, TypeError):
        for row in range(len(cells)):
            _check_cell(cells[row : row + 1], field, row)
        raise


def _check_cell(cell: Cells, field: pa.Field, row: int) -> None:
    try:
        _values(cell, field.type)
    except (ValueError, TypeError) as error:
        shown = cell[0].as_py() if isinstance(cell, pa.Array) else json.dumps(cell[0])
        text = f"row {row} of the file: column {field.name} must be {a_type(field.type)}: {shown}"
        raise pa.ArrowInvalid(text) from error


def _values(cells: Cells, type_: pa.DataType) -> pa.Array:
    """Cells as values of a type; a ValueError or TypeError where they are none of it."""
    if not isinstance(cells, pa.Array):
        return _nested(cells, type_)
    if pa.types.is_nested(type_):
        return _nested([None if t is None else _parsed(t) for t in cells.to_pylist()], type_)
    return _plain(cells, type_)


def _nested(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values of JSON as an array, from the inside out."""
    missing = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        if any(value is not None and [*value] != names for value in values):
            raise ValueError("other members")
        of = [[None if v is None else v[field.name] for v in values] for field in type_]
        parts = [_nested(v, field.type) for v, field in zip(of, type_, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=missing)
    if is_list(type_):
        if not all(value is None or isinstance(value, list) for value in values):
            raise ValueError("no list")
        ends = np.cumsum([0, *(len(value or ()) for value in values)])
        items = _nested([item for value in values for item in value or ()], type_.value_type)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, mask=missing)
    texts = [str(v).lower() if isinstance(v, bool) else v for v in values]
    return _plain(pa.array(texts, pa.string()), type_)


def _plain(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Texts as values of a type without parts."""
    for is_kind, read in _ONE_BY_ONE:
        if is_kind(type_):
            cells = [None if text is None else read(text) for text in texts.to_pylist()]
            return pa.array(cells, type_)
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _times(texts, type_)
    return texts.cast(type_)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _duration(text: str) -> int:
    """Microseconds of a number of them, or of a duration as Python writes it."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return int(text)
    days, hours, minutes, seconds, micros = (int(part or 0) for part in found.groups())
    return timedelta(days, seconds, micros, 0, minutes, hours) // MICROSECOND


_ONE_BY_ONE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pa.types.is_binary, _bytes),
    (pa.types.is_time, time.fromisoformat),
    (pa.types.is_duration, _duration),
)
"""The types that Arrow does not read as they are written."""


def _times(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Dates and times; those beyond Arrow's years are moved by whole eras, as they were written."""
    cells = texts.to_pylist()
    far = [at for at, text in enumerate(cells) if text and (text[0] in "+-" or text[:4] == "0000")]
    if not far:
        return texts.cast(type_)
    eras = np.zeros(len(cells), np.int64)
    for at in far:
        found = _FAR.fullmatch(cells[at])
        if found is None:
            raise ValueError(cells[at])
        era, year = divmod(int(found[1] + found[2]), ERA_YEARS)
        eras[at] = era - 5
        cells[at] = f"{year + 5 * ERA_YEARS}{found[3]}"
    near = pa.array(cells, pa.string()).cast(type_)
    whole = pa.int32() if type_.bit_width == 32 else pa.int64()
    counts = near.cast(whole).fill_null(0).to_numpy(zero_copy_only=False)
    moved = (counts + eras * era_length(type_)).astype(counts.dtype)
    return pa.array(moved, whole, mask=near.is_null().to_numpy(zero_copy_only=False)).view(type_)
