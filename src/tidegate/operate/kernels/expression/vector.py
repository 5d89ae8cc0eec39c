"""Conversions between Arrow arrays and numpy vectors, for the expression kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def repeat(scalar: Any, rows: int) -> Any:
    """A scalar as an array of equal values."""
    return pa.repeat(scalar, rows) if scalar.is_valid else pa.nulls(rows, scalar.type)


def split(array: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """The values (NULL as zero, times as integers), and which of them are valid (None: all)."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if not array.null_count:
        return array.to_numpy(zero_copy_only=False), None
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return array.fill_null(0).to_numpy(zero_copy_only=False), valid


def split_all(*arrays: Any) -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any] | None]:
    """The values of arrays of one length, and in which rows all of them are valid (None: all)."""
    parts = [split(array) for array in arrays]
    masks = [valid for _, valid in parts if valid is not None]
    return [values for values, _ in parts], np.logical_and.reduce(masks) if masks else None


def join(
    values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any] | None, type_: pa.DataType
) -> Any:
    """The array of numpy values and their validity; the counterpart of `split`."""
    mask = None if valid is None else ~valid
    if pa.types.is_temporal(type_):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, type=width, mask=mask).view(type_)
    return pa.array(values, type=type_, mask=mask)


def both(left: Any, right: Any) -> tuple[Any, Any]:
    """Two arguments as arrays of one length; at least one is an array already."""
    if isinstance(left, pa.Scalar):
        left = repeat(left, len(right))
    if isinstance(right, pa.Scalar):
        right = repeat(right, len(left))
    return left, right


def by_distinct(array: Any, function: Callable[[Any], Any], type_: pa.DataType) -> Any:
    """Apply a Python function once per distinct value; for rare or irregular values only."""
    encoded = array.dictionary_encode()
    mapped = pa.array([function(value) for value in encoded.dictionary.to_pylist()], type_)
    return mapped.take(encoded.indices)


def none_where(mask: Any, array: Any) -> Any:
    """The array with NULL in the marked rows."""
    return pc.if_else(mask, pa.scalar(None, array.type), array)
