"""Turns numbers, such as keys, into string columns by tables of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.connector import Int64s

_SCATTER = 61_803_399
"""Coprime to 2, 5 and 13: multiplying permutes the numbers below powers of 2, 10 and 26."""


@dataclass(frozen=True)
class Labels:
    """A table of texts of one width, looked up by number.

    Lookup copies blocks of bytes, which is two to three times as fast as texts of any width.
    """

    table: NDArray[np.void]

    @staticmethod
    def of(texts: NDArray[np.uint8]) -> Labels:
        width = texts.shape[1]
        return Labels(np.ascontiguousarray(texts).view(np.dtype((np.void, width))).ravel())

    def take(self, numbers: Int64s) -> pa.Array:
        width = self.table.dtype.itemsize
        data = self.table.take(numbers)
        offsets = np.arange(0, (len(numbers) + 1) * width, width, dtype=np.int32)
        return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(data))


def digits(numbers: Int64s, width: int, base: int = 10, zero: str = "0") -> NDArray[np.uint8]:
    """Each number as `width` digits counted from the character `zero` on; shape (count, width)."""
    places = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    digit = numbers[:, None] // places % base
    return (digit + ord(zero)).astype(np.uint8)


def scattered(count: int, below: int, seed: int) -> Int64s:
    """`count` distinct numbers in [0, below) in no apparent order; `below` a power of 2, 10, 26."""
    return (np.arange(count, dtype=np.int64) * _SCATTER + seed % below) % below


def fixed(texts: Sequence[str]) -> Labels:
    """Labels for ASCII texts, all of one width."""
    width = len(texts[0])
    return Labels.of(np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(-1, width))


def joined(pieces: pa.Array, numbers: Int64s) -> pa.Array:
    """One text per row of `numbers`, of shape (rows, places): the pieces with these numbers."""
    rows, places = numbers.shape
    taken = pieces.take(pa.array(numbers.ravel()))
    _, offsets, data = taken.buffers()
    bounds = np.frombuffer(offsets, np.int32, rows * places + 1)[::places]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(np.ascontiguousarray(bounds)), data)


def decimals(hundredths: Int64s) -> pa.Array:
    """Numbers from 0 on with two places after the point, as decimal(15, 2)."""
    wide = np.zeros((len(hundredths), 2), np.int64)
    wide[:, 0] = hundredths
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(wide), [None, pa.py_buffer(wide)])
