"""Writes tables as lines of JSON, column by column rather than row by row."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar.era import texts
from tidegate.leaf import each_leaf

_NEEDS_CARE = r'[\x00-\x1f"\\]'
_NONFINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def write_json(table: pa.Table, out: Any) -> None:
    """Write one object per row into an open file.

    NULL is null, times are ISO 8601 in UTC. NaN and infinities are texts: JSON does not have them.
    """
    for batch in table.combine_chunks().to_batches(max_chunksize=65536):
        if batch.num_rows:
            out.write(lines(batch))


def lines(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch, which must have rows, as bytes of JSON lines."""
    rows = objects(batch, "\n")
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(rows)], rows), "")
    return whole[0].as_buffer()


def objects(batch: pa.RecordBatch, end: str = "") -> pa.Array:
    """One JSON object per row, as texts that end with `end`; there must be a column."""
    cells = []
    for number, name in enumerate(batch.schema.names):
        label = ("{" if number == 0 else ", ") + json.dumps(name) + ": "
        text = pc.fill_null(encoded(batch.column(number)), "null")
        cells.append(pc.binary_join_element_wise(label, text, ""))
    return pc.binary_join_element_wise(*cells, "}" + end, "")


def encoded(column: pa.Array) -> pa.Array:
    """The cells of a column as JSON texts; NULL stays NULL, bytes are base64."""
    type_ = column.type
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return column.cast(pa.string())
    if pa.types.is_floating(type_):
        return _with_care(column, column.cast(pa.string()), pc.invert(pc.is_finite(column)))
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _quoted(_written(column))
    if pa.types.is_string(type_):
        return _with_care(column, _quoted(column), pc.match_substring_regex(column, _NEEDS_CARE))
    return _one_by_one(column)


def first_nonfinite(column: pa.ChunkedArray) -> int | None:
    """The first row with a NaN or an infinity, at any depth; None where there is none."""
    if not _has_nonfinite(column):
        return None
    # Bisect: rows before `low` have none, and one of [low, high) has one.
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _has_nonfinite(column.slice(low, middle - low)):
            high = middle
        else:
            low = middle
    return low


def _has_nonfinite(column: pa.ChunkedArray | pa.Array) -> bool:
    type_ = column.type
    if pa.types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is False
    if pa.types.is_struct(type_):
        return any(map(_has_nonfinite, column.flatten()))
    if not pa.types.is_nested(type_):
        return False
    if pa.types.is_map(type_):
        column = column.cast(pa.list_(pa.struct([type_.key_field, type_.item_field])))
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return any(_has_nonfinite(chunk.flatten()) for chunk in chunks)


def _quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def _with_care(column: pa.Array, texts: pa.Array, odd: pa.Array) -> pa.Array:
    """`texts`, in which the cells that are `odd` are replaced, encoded one by one."""
    if not pc.any(odd).as_py():
        return texts
    odd = pc.fill_null(odd, False)
    return pc.replace_with_mask(texts, odd, _one_by_one(column.filter(odd)))


def _one_by_one(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        column = each_leaf(column, _written)
    cells = [None if v is None else _text(v) for v in column.to_pylist(maps_as_pydicts="lossy")]
    return pa.array(cells, pa.string())


def _written(column: pa.Array) -> pa.Array:
    """Dates and timestamps of any year as texts; other columns unchanged."""
    if pa.types.is_date(column.type):
        return texts(lambda dates: dates.cast(pa.string()), column)
    if not pa.types.is_timestamp(column.type):
        return column
    return texts(lambda times: pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ"), column)


def _text(value: Any) -> str:
    """One value, however nested, in the form that `encoded` gives a column of its type."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_label(k)}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return _NONFINITE[str(value)]
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    if isinstance(value, datetime):
        utc = value if value.tzinfo is None else value.astimezone(UTC)
        value = utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps(value, default=str)


def _label(name: Any) -> str:
    return json.dumps(name if isinstance(name, str) else str(name))
