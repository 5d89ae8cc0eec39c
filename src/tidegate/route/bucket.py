"""Hashes keys, and finds the bucket of a key: the unit in which state is moved.

The hash is part of the format of checkpoints: with another one, groups would be in other buckets.
It is the same on every machine and in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import QueryError

Hashes = npt.NDArray[np.uint64]

_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_BYTE = np.uint64(0x100000001B3)
_BLOCK_BYTES = 2**14


def bucket_of(keys: Sequence[pa.Array], buckets: int, rows: int = 0) -> npt.NDArray[np.int32]:
    """The bucket in [0, buckets) of every row of the key columns; without keys, `rows` times 0.

    NULL is a value, NaN equals NaN, -0.0 equals 0.0, and an integer or a float has the same
    bucket in every width. Strings cost O(bytes), everything else O(rows), by column.
    """
    if not keys:
        return np.zeros(rows, np.int32)
    return (hash_of(keys) % np.uint64(buckets)).astype(np.int32)


def hash_of(keys: Sequence[pa.Array]) -> Hashes:
    """64 bits for every row of at least one key column, equal where the keys are."""
    hashes = np.full(len(keys[0]), _SEED)
    for key in keys:
        hashes = _mix(hashes ^ _hash(key))
    return hashes


def _mix(words: Hashes) -> Hashes:
    """The finaliser of splitmix64."""
    words = words + _SEED
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hash(column: pa.Array) -> Hashes:
    if pa.types.is_null(column.type):
        return np.full(len(column), _NULL)
    hashes = _mix(_words(column))
    if column.null_count:
        hashes[pc.is_null(column).to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _words(column: pa.Array) -> Hashes:
    """64 bits that are equal for equal values; anything where the column is NULL."""
    kinds, type_ = pa.types, column.type
    if kinds.is_string(type_) or kinds.is_binary(type_):
        return _polynomial(column)
    if kinds.is_large_string(type_) or kinds.is_large_binary(type_):
        return _polynomial(column.cast(pa.binary()))
    if kinds.is_fixed_size_binary(type_):
        return _polynomial(column.cast(pa.binary()))
    if kinds.is_decimal(type_):
        return _decimal(column)
    if kinds.is_floating(type_):
        doubles: npt.NDArray[np.float64] = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        values = doubles + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    if kinds.is_boolean(type_):
        column = column.cast(pa.int64())
    elif kinds.is_temporal(type_):
        column = column.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    elif not kinds.is_integer(type_):
        raise QueryError("bucket", "a key must have a type that can be compared", str(type_))
    integers: npt.NDArray[Any] = column.fill_null(0).to_numpy()
    return integers.astype(np.int64, copy=False).view(np.uint64)


def _decimal(column: pa.Array) -> Hashes:
    if not pa.types.is_decimal128(column.type):
        column = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(column.buffers()[1] or b"", np.uint64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    return _mix(words[:, 0]) ^ words[:, 1]


def _polynomial(column: pa.Array) -> Hashes:
    """Sum of (byte + 1) * base**position over each value, modulo 2**64, plus its length.

    The ones added to the bytes make a sum of powers, which depends on the length alone: it is taken
    from a table. Bytes are widened to eight bytes each in blocks that stay in the processor's
    cache, however long the values are.
    """
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset :][: len(column) + 1]
    offsets = offsets.astype(np.int64)
    lengths = np.diff(offsets)
    powers, sums_of_powers = _powers(int(lengths.max(initial=0)))
    hashes = lengths.astype(np.uint64)
    some = np.flatnonzero(lengths)
    if not len(some):
        return hashes
    hashes += sums_of_powers[lengths]
    text = np.frombuffer(data, np.uint8)
    begins, ends = offsets[:-1][some], offsets[1:][some]
    first = 0
    while first < len(some):
        last = max(int(np.searchsorted(ends, begins[first] + _BLOCK_BYTES, "right")), first + 1)
        block = text[begins[first] : ends[last - 1]].astype(np.uint64)
        if last == first + 1:
            sums = np.dot(block, powers[: len(block)])
        else:
            starts = begins[first:last] - begins[first]
            place = np.arange(len(block)) - np.repeat(starts, lengths[some[first:last]])
            sums = np.add.reduceat(block * powers[place], starts)
        hashes[some[first:last]] += sums
        first = last
    return hashes


def _powers(most: int) -> tuple[Hashes, Hashes]:
    """Powers of the base from 1 on, and the sums of the first n of them, for up to `most` bytes.

    Those for short values are computed once.
    """
    return _SHORT if most < len(_SHORT[0]) else _made_powers(most + 1)


def _made_powers(count: int) -> tuple[Hashes, Hashes]:
    powers: Hashes = np.cumprod(np.full(count, _BYTE), dtype=np.uint64)
    return powers, np.concatenate([np.zeros(1, np.uint64), np.cumsum(powers)])


_SHORT = _made_powers(256)
