"""Rows of CSV and JSON as texts, cell by cell, in the form that the writers give them.

Published files of these formats say nothing of types. So rows are compared with them as texts: they
go through the writer of the format first (`as_text`). NULL and the empty text stay apart.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from tidegate.schema import TIME
from tidegate.sink.folder.form import WRITERS

_ROWS = 65_536


def read_text(data: bytes, format: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file of CSV or JSON; an ArrowInvalid where it cannot be read."""
    if not data:
        return
    try:
        table = _READERS[format](data)
    except (ValueError, csv.Error) as error:
        raise pa.ArrowInvalid(str(error)) from error
    yield from table.to_batches(max_chunksize=_ROWS)


def as_text(batch: pa.RecordBatch, format: str) -> pa.RecordBatch:
    """Rows as they are read back from a file of the format."""
    out = io.BytesIO()
    WRITERS[format](pa.Table.from_batches([batch]), out)
    read = list(read_text(out.getvalue(), format)) if batch.num_rows else []
    if not read:
        texts = pa.schema([(name, pa.string()) for name in batch.schema.names])
        return pa.RecordBatch.from_pylist([], schema=texts)
    (found,) = pa.Table.from_batches(read).combine_chunks().to_batches()
    return found


def time_as_text(time_us: int, format: str) -> str:
    """An event time as a cell. These texts sort as their times do, from year 0 to 9999."""
    times = pa.array([time_us], pa.int64()).cast(TIME)
    text: str = as_text(pa.record_batch([times], ["ts"]), format).column(0)[0].as_py()
    return text


def _csv(data: bytes) -> pa.Table:
    names = next(csv.reader(io.StringIO(data.decode())))
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=names, skip_rows=1),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
        pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _json(data: bytes) -> pa.Table:
    names: list[str] = []
    columns: list[list[str | None]] = []
    for number, line in enumerate(data.decode().removesuffix("\n").split("\n")):
        row = json.loads(line, parse_float=_Number, parse_int=_Number, parse_constant=_Number)
        if not number:
            names, columns = [*row], [[] for _ in row]
        if not isinstance(row, dict) or [*row] != names:
            raise ValueError(f"line {number + 1} has other members than the first")
        for column, value in zip(columns, row.values(), strict=True):
            column.append(_cell(value))
    return pa.table([pa.array(column, pa.string()) for column in columns], names)


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


_READERS = {"csv": _csv, "json": _json}
TEXTS: Sequence[str] = tuple(_READERS)
"""The formats whose rows are compared as texts."""
