"""Codes values of any type as integers that sort alike.

The order is the engine's: numbers ascending with NaN greatest, strings and binaries by their bytes,
false before true, times by instant. NULL has no place in it; callers treat it apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CODED = {
    type_: pa.dictionary(pa.int32(), type_, ordered=True)
    for type_ in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
}
"""By type of values, the type of a column of codes: indices into a dictionary that is sorted."""

_LOW_BITS = np.int64(2**63 - 1)
_TOP_BIT = np.uint64(2**63)


@dataclass(frozen=True)
class Ordered:
    """Integers in the order of the values that they stand for, and a function that leads back."""

    keys: Ints
    decode: Callable[[Ints], pa.Array]


def flat(column: pa.Array | pa.ChunkedArray, type_: pa.DataType | None = None) -> pa.Array:
    """One contiguous array of the given type; costs nothing when it is one already."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    return column if type_ is None or column.type == type_ else column.cast(type_)


def valid(column: pa.Array) -> Mask | None:
    """Which rows are not NULL; None stands for all of them."""
    if column.null_count == 0:
        return None
    mask: Mask = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return mask


def is_ordered(type_: pa.DataType) -> bool:
    """Whether values of a type can be compared, and therefore grouped."""
    kinds = pa.types
    return bool(
        _is_number_like(type_)
        or kinds.is_string(type_)
        or kinds.is_large_string(type_)
        or kinds.is_binary(type_)
        or kinds.is_large_binary(type_)
        or kinds.is_fixed_size_binary(type_)
        or kinds.is_decimal(type_)
        or kinds.is_null(type_)
    )


def _is_number_like(type_: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_integer(type_)
        or kinds.is_floating(type_)
        or kinds.is_boolean(type_)
        or kinds.is_date(type_)
        or kinds.is_timestamp(type_)
        or kinds.is_time(type_)
        or kinds.is_duration(type_)
    )


def canonical(column: pa.Array) -> pa.Array:
    """The same column with one NaN and one zero; only floats are touched, NULL stays NULL."""
    if not pa.types.is_floating(column.type):
        return column
    values = one_zero(floats(column.fill_null(0.0)))
    mask = None if column.null_count == 0 else pc.is_null(column).to_numpy(zero_copy_only=False)
    return pa.array(values, mask=mask).cast(column.type, safe=False)


def one_zero(values: Floats) -> Floats:
    """A copy in which every NaN has the same bits and -0.0 is 0.0."""
    result: Floats = values + 0.0
    result[np.isnan(result)] = np.nan
    return result


def floats(column: pa.Array) -> Floats:
    """A numeric column without NULL as the nearest doubles; read-only if it has doubles already."""
    if pa.types.is_decimal(column.type):
        return _decimal_floats(column)
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values


def _decimal_floats(column: pa.Array) -> Floats:
    """The doubles nearest to decimals.

    Arrow's cast multiplies by a power of ten that is rounded itself, so 1.005 would not become
    1.005. A quotient of two exact doubles is rounded once; longer decimals go through their text.
    """
    scale = column.type.scale
    wide = column if pa.types.is_decimal128(column.type) else column.cast(pa.decimal128(38, scale))
    words = np.frombuffer(wide.buffers()[1] or b"", np.int64).reshape(-1, 2)
    low, high = words[wide.offset : wide.offset + len(wide)].T
    exact = (high == low >> 63) & (low >= -(2**53)) & (low <= 2**53)
    if 0 <= scale <= 22 and bool(exact.all()):
        result: Floats = low / 10.0**scale
    else:
        result = column.cast(pa.string()).cast(pa.float64()).to_numpy()
    return result


def integers(column: pa.Array) -> Ints:
    """An integer, boolean or time column without NULL as int64, in the same order."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        column = column.cast(pa.int8())
    elif not pa.types.is_integer(type_):
        column = column.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        return (values ^ _TOP_BIT).view(np.int64)
    return values.astype(np.int64, copy=False)


def coded(column: pa.Array) -> pa.DictionaryArray:
    """A column of texts or bytes as codes that sort alike; costs a sort of the distinct values."""
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    codes = pa.array(inverse(order.to_numpy().astype(np.int64)), pa.int32())
    return pa.DictionaryArray.from_arrays(
        codes.take(encoded.indices), encoded.dictionary.take(order), ordered=True
    )


def ordered(column: pa.Array) -> Ordered:
    """Order-preserving int64 keys for a column without NULL; -0.0 is below 0.0, all NaN are equal.

    Numbers and times cost one pass, other types a dictionary and a sort of its distinct values.
    """
    type_ = column.type
    if pa.types.is_floating(type_):
        return Ordered(_float_keys(floats(column)), lambda keys: _float_values(keys, type_))
    if _is_number_like(type_):
        return Ordered(integers(column), lambda keys: _integer_values(keys, type_))
    if isinstance(column, pa.DictionaryArray) and type_.ordered:
        places = column.indices.to_numpy().astype(np.int64)
        return Ordered(places, lambda chosen: column.dictionary.take(pa.array(chosen)))
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    keys = inverse(order.to_numpy().astype(np.int64))[encoded.indices.to_numpy()]
    return Ordered(keys, lambda chosen: encoded.dictionary.take(order.take(pa.array(chosen))))


def inverse(permutation: Ints) -> Ints:
    """Where each position went: inverse(p)[p[i]] == i."""
    result = np.empty(len(permutation), np.int64)
    result[permutation] = np.arange(len(permutation))
    return result


def _float_keys(values: Floats) -> Ints:
    # The bits of positive doubles sort like integers, those of negative ones in reverse: flipping
    # all bits but the sign puts these in order.
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.where(bits < 0, bits ^ _LOW_BITS, bits)


def _float_values(keys: Ints, type_: pa.DataType) -> pa.Array:
    bits = np.where(keys < 0, keys ^ _LOW_BITS, keys)
    return pa.array(bits.view(np.float64)).cast(type_, safe=False)


def _integer_values(keys: Ints, type_: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type_):
        return pa.array(keys != 0)
    if type_ == pa.uint64():
        return pa.array(keys.view(np.uint64) ^ _TOP_BIT)
    if pa.types.is_integer(type_):
        return pa.array(keys).cast(type_)
    if type_.bit_width == 32:
        return pa.array(keys.astype(np.int32)).view(type_)
    return pa.array(keys).view(type_)


def spread(values: pa.Array, has: Mask) -> pa.Array:
    """Put the values, in order, at the marked places of a longer column; the rest is NULL."""
    if len(values) == len(has):
        return values
    places = np.cumsum(has) - 1
    return values.take(pa.array(places, mask=~has))
