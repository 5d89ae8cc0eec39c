"""Writes tables as CSV; values that CSV has no form for are JSON inside their cell."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tidegate.calendar.era import is_far, texts
from tidegate.sink.json import encoded


def write_csv(table: pa.Table, out: Any) -> None:
    """Write a header and one line per row into an open file, strings quoted, NULL as nothing."""
    pyarrow.csv.write_csv(_plain(table), out)


def csv_text(table: pa.Table, header: bool) -> str:
    """The same as text."""
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=header)
    pyarrow.csv.write_csv(_plain(table), sink, options)
    return bytes(sink.getvalue()).decode()


def _plain(table: pa.Table) -> pa.Table:
    """Nested values as JSON, bytes as base64, times beyond Arrow's years as texts of its form."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
            column = table.column(place).combine_chunks()
            if is_far(column):
                table = table.set_column(place, field.name, texts(_written, column))
        nested = pa.types.is_nested(field.type)
        if nested or pa.types.is_binary(field.type):
            text = encoded(table.column(place).combine_chunks())
            text = text if nested else pc.utf8_trim(text, '"')
            table = table.set_column(place, field.name, text)
    return table


def _written(times: pa.Array) -> pa.Array:
    """Dates and timestamps as Arrow writes them into CSV."""
    if pa.types.is_date(times.type):
        return times.cast(pa.string())
    return pc.strftime(times, "%Y-%m-%d %H:%M:%SZ")
