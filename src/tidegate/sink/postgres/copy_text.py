"""Writes rows in the text format of COPY, column by column rather than row by row.

Arrow joins the lines, so only values of structs and maps become Python objects. Values that
Postgres cannot hold are refused here, before the batch is committed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.calendar.era import first_far, is_far
from tidegate.calendar.microsecond import DAY_US
from tidegate.errors import SinkError
from tidegate.leaf import each_leaf
from tidegate.sink.json import encoded
from tidegate.sink.postgres.column import is_array

NULL = "\\N"
_NO_TEXT = pa.scalar(None, pa.string())

_AT_ONCE = 65_536
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_NOT_COMMITTED = "Nothing of the batch was committed."


def copy_text(rows: pa.Table, where: str) -> bytes:
    """The rows as lines; a SinkError names the column with a value that Postgres cannot hold."""
    pieces = []
    for batch in rows.combine_chunks().to_batches(max_chunksize=_AT_ONCE):
        if batch.num_rows:
            cells = [
                pc.fill_null(_cells(column, where, field.name), NULL)
                for field, column in zip(batch.schema, batch.columns, strict=True)
            ]
            # The last argument is the separator.
            lines = pc.binary_join_element_wise(*cells, "\t") if len(cells) > 1 else cells[0]
            ended = pc.binary_join_element_wise(lines, "\n", "")
            whole = pc.binary_join(pa.ListArray.from_arrays([0, len(ended)], ended), "")
            pieces.append(whole[0].as_buffer())
    return b"".join(pieces)


def _cells(column: pa.Array, where: str, name: str) -> pa.Array:
    text = cell_texts(column, where, name)
    may = pa.types.is_nested(column.type) or column.type in (pa.string(), pa.binary())
    return _escaped(text) if may else text


def cell_texts(column: pa.Array, where: str, name: str) -> pa.Array:
    """The values as Postgres reads them, not yet escaped; NULL stays NULL."""
    type_ = column.type
    if is_array(type_):
        return _array_texts(column, where, name)
    if pa.types.is_nested(type_):
        each_leaf(column, lambda leaf: _checked(leaf, where, name))
        return encoded(column)
    column = _checked(column, where, name)
    return next((write for test, write in _TEXTS if test(type_)), _cast)(column)


def _cast(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _hex(column: pa.Array) -> pa.Array:
    """Bytes as `\\x...`: all values in one pass, because each byte has exactly two digits."""
    column = pa.concat_arrays([column]).fill_null(b"")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    digits = b"" if data is None else bytes(data[int(bounds[0]) : int(bounds[-1])]).hex().encode()
    doubled = pa.array((bounds - bounds[0]) * 2, pa.int32())
    made = pa.Array.from_buffers(
        pa.string(), len(column), [None, doubled.buffers()[1], pa.py_buffer(digits)]
    )
    return pc.binary_join_element_wise("\\x", made, "")


def _hex_with_nulls(column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), _hex(column), _NO_TEXT)


_LAYOUT = np.frombuffer(b"0001-01-01 00:00:00.000000Z", np.uint8)
_CLOCK = (
    *((11, 36_000_000_000), (12, 3_600_000_000), (14, 600_000_000), (15, 60_000_000)),
    *((17, 10_000_000), (18, 1_000_000), (20, 100_000), (21, 10_000), (22, 1_000)),
    *((23, 100), (24, 10), (25, 1)),
)
"""The position of each digit of a time of day, and the microseconds that it counts."""


def _times(column: pa.Array) -> pa.Array:
    """Timestamps as Arrow's cast writes them, one digit of all values at a time.

    A batch has few days, so the text of each is made once.
    """
    us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    days, rest = np.divmod(us, DAY_US)
    texts = np.tile(_LAYOUT, (len(us), 1))
    known, places = np.unique(days, return_inverse=True)
    dates = known.astype("datetime64[D]").astype("S10")
    texts[:, :10] = np.frombuffer(dates.tobytes(), np.uint8).reshape(-1, 10)[places]
    for place, unit in _CLOCK:
        digit, rest = np.divmod(rest, unit)
        texts[:, place] += digit.astype(np.uint8)
    offsets = pa.py_buffer(np.arange(len(us) + 1, dtype=np.int32) * len(_LAYOUT))
    made = pa.Array.from_buffers(pa.string(), len(us), [None, offsets, pa.py_buffer(texts)])
    return made if not column.null_count else pc.if_else(column.is_valid(), made, _NO_TEXT)


def _seconds(column: pa.Array) -> pa.Array:
    """Durations as seconds with six decimals."""
    numbers = column.cast(pa.int64()).cast(pa.decimal128(19, 0))
    # The microseconds, read as a decimal of scale 6, are the seconds: no value is computed.
    exact = pa.Array.from_buffers(pa.decimal128(19, 6), len(numbers), numbers.buffers())
    return pc.binary_join_element_wise(exact.cast(pa.string()), " s", "")


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_string, lambda column: column),
    (pa.types.is_timestamp, _times),
    (pa.types.is_binary, _hex_with_nulls),
    (pa.types.is_duration, _seconds),
)


def _array_texts(column: pa.Array, where: str, name: str) -> pa.Array:
    """Lists of plain values as `{"a","b",NULL}`."""

    def quoted(leaf: pa.Array) -> pa.Array:
        text = cell_texts(leaf, where, name)
        for of, to in (("\\", "\\\\"), ('"', '\\"')):
            text = pc.replace_substring(text, of, to)
        return pc.fill_null(pc.binary_join_element_wise('"', text, '"', ""), "NULL")

    return pc.binary_join_element_wise("{", pc.binary_join(each_leaf(column, quoted), ","), "}", "")


def _escaped(text: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(text, r"[\\\n\r\t]")).as_py():
        return text
    for of, to in _ESCAPES:
        text = pc.replace_substring(text, of, to)
    return text


def _checked(column: pa.Array, where: str, name: str) -> pa.Array:
    """The column; refused where it has NUL characters or times beyond the years 1 to 9999."""
    if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
        raise SinkError(
            where,
            f"column {name} must have texts without the character NUL, which Postgres has not",
            "one with it",
            f"{_NOT_COMMITTED} Take it out in the query, or leave such rows out.",
        )
    timed = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    if timed and is_far(column):
        raise SinkError(
            where,
            f"column {name} must have times of the years 1 to 9999",
            first_far(column),
            f"{_NOT_COMMITTED} Leave such rows out in the query, or write NULL for them.",
        )
    return column
