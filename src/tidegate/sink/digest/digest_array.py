"""The loops of a digest as operations on arrays, for few rows: they need no Numba.

Without them a run that writes a handful of rows would import Numba for its digest alone.
`digest_loop` is several times as fast per row; both give the same numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

SEED, NULL = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
M1, M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
PRIME = 2**61 - 1
BASE = 0x0B4E0F9A3C6D1E57
"""The base of the polynomial: any number below the prime that is not small."""

_U64 = np.uint64
_WORD_BYTES = 8


def _mixed(words: Words) -> Words:
    """The finaliser of splitmix64."""
    words = words + _U64(SEED)
    words = (words ^ (words >> _U64(30))) * _U64(M1)
    words = (words ^ (words >> _U64(27))) * _U64(M2)
    return words ^ (words >> _U64(31))


def mix_words(rows: Words, words: Words, nulls: Bools, column: np.uint64) -> None:
    """Mix 64 bits of each cell into the hashes of rows, in place.

    `rows` and `words` are uint64 of equal length; `nulls` has as many, or none where no cell is
    NULL.
    """
    _mix_cells(rows, _mixed(words), nulls, column)


def mix_texts(
    rows: Words,
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    nulls: Bools,
    column: np.uint64,
) -> None:
    """Mix texts into the hashes of rows, eight bytes at a time; costs O(longest text) calls.

    Text i is `data[offsets[i]:offsets[i + 1]]`; there is one offset more than rows.
    """
    begins, lengths = offsets[:-1], np.diff(offsets)
    cells = _mixed(lengths.astype(np.uint64))
    for start in range(0, int(lengths.max(initial=0)), _WORD_BYTES):
        longer = np.flatnonzero(lengths > start)
        firsts, left = begins[longer] + start, lengths[longer] - start
        words = np.zeros(len(longer), np.uint64)
        for place in range(_WORD_BYTES):
            there = left > place
            bytes_ = data[firsts[there] + place].astype(np.uint64)
            words[there] = (words[there] << _U64(8)) | bytes_
        cells[longer] = _mixed(cells[longer] ^ words)
    _mix_cells(rows, cells, nulls, column)


def _mix_cells(rows: Words, cells: Words, nulls: Bools, column: np.uint64) -> None:
    if len(nulls):
        cells = np.where(nulls, _U64(NULL), cells)
    rows[:] = _mixed(rows ^ _mixed(cells ^ column))


def fold(rows: Words, before: np.uint64) -> int:
    """The digest `before` with these rows after it; row by row in Python's integers."""
    found = int(before)
    for row in (rows >> _U64(3)).tolist():
        found = (found * BASE + row + 1) % PRIME
    return found
