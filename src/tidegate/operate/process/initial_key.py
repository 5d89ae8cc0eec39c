"""Numbers the keys of a table, so that one binary search finds the row of a Python key.

A column is numbered as a whole with numpy. A single key is numbered in Python, by a function that
gives the same number. Different keys may share a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.operate.process.key import plain_key
from tidegate.operate.process.tuple import python_values
from tidegate.route.bucket import hash_of

Words = npt.NDArray[np.uint64]

_MASK = 2**64 - 1
_FACTOR = 0x9E3779B97F4A7C15
_MOST_BYTES = 256
"""The number of a longer text depends on so many first bytes and on its length."""


class InitialKeys:
    """A key column of a table. Numbering one text, bytes or integer is cheap; a value of another
    type costs an Arrow array of one."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column
        kinds, type_ = pa.types, column.type
        self._word: Callable[[Any], int | None] = self._other
        if kinds.is_string(type_) or kinds.is_large_string(type_):
            self._word = _of_text
        elif kinds.is_binary(type_) or kinds.is_large_binary(type_):
            self._word = _of_bytes
        elif kinds.is_integer(type_) or kinds.is_boolean(type_):
            self._word = _of_integer

    def words(self) -> Words:
        """The number of every value."""
        if self._word is _of_integer:
            # NULL gets the number of 0; whoever looks a key up compares it with those it finds.
            integers = self._column.cast(pa.int64(), safe=False).fill_null(0).to_numpy()
            return np.ascontiguousarray(integers).view(np.uint64)
        if self._word in (_of_text, _of_bytes):
            return _crc32_of(self._column.cast(pa.large_binary()).fill_null(b""))
        return hash_of([self._column])

    def word(self, value: Any) -> int | None:
        """The number of a value; None for one that no value of the column is equal to."""
        return self._word(value)

    def value(self, row: int) -> Any:
        return python_values(pa.chunked_array([self._column.slice(row, 1)]))[0]

    def _other(self, value: Any) -> int | None:
        type_ = self._column.type
        try:
            plain = None if value is None else plain_key(value)
            if pa.types.is_decimal(type_) and isinstance(plain, int | float):
                plain = Decimal(plain)
            return int(hash_of([pa.array([plain], type_)])[0])
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError):
            return None


def words_of(columns: Sequence[InitialKeys]) -> Words:
    """The number of the key of every row."""
    first, *others = [column.words() for column in columns]
    for words in others:
        first = first * np.uint64(_FACTOR) + words
    return first


def one_word(columns: Sequence[InitialKeys], parts: Sequence[Any]) -> int | None:
    """The number of one key; None for a key that no row has."""
    found = 0
    for column, part in zip(columns, parts, strict=True):
        word = column.word(part)
        if word is None:
            return None
        found = (found * _FACTOR + word) & _MASK
    return found


def _of_text(value: Any) -> int | None:
    if value is not None and not isinstance(value, str):
        return None
    return _of_bytes((value or "").encode("utf-8", "surrogatepass"))


def _of_bytes(value: Any) -> int | None:
    if value is not None and not isinstance(value, bytes):
        return None
    found = value or b""
    return len(found) << 32 | crc32(found[:_MOST_BYTES])


def _of_integer(value: Any) -> int | None:
    plain = 0 if value is None else plain_key(value)
    return plain & _MASK if type(plain) is int else None


def _crc32_of(column: pa.Array) -> Words:
    """The numbers that `_of_bytes` gives, for a whole column; costs O(bytes).

    It advances all values together, byte position by byte position. Longer values come first, so
    that the values which have a byte at a position are one slice.
    """
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset :][: len(column) + 1]
    text = np.frombuffer(data if data is not None else b"", np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    begins, descending = offsets[:-1][order], -lengths[order]
    crc = np.full(len(order), 0xFFFFFFFF, np.uint32)
    for position in range(min(int(lengths.max(initial=0)), _MOST_BYTES)):
        some = int(np.searchsorted(descending, -position))
        before, byte = crc[:some], text[begins[:some] + position]
        crc[:some] = _CRC[(before ^ byte) & np.uint32(0xFF)] ^ (before >> np.uint32(8))
    found = np.empty(len(order), np.uint64)
    found[order] = crc ^ np.uint32(0xFFFFFFFF)
    return found | lengths.astype(np.uint64) << np.uint64(32)


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (np.uint32(0xEDB88320) * (table & np.uint32(1)))
    return table


_CRC = _crc_table()
