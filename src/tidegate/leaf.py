"""Rebuilds nested columns with their leaf arrays changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def each_leaf(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The array with `change` applied to every leaf inside structs, lists and maps; lengths stay.

    A leaf is an array of any other type. Lists of every layout become plain lists. Values hidden by
    a NULL are not passed to `change`. Costs only the changes and the lists' offsets.
    """
    type_, missing = array.type, array.is_null()
    if pa.types.is_struct(type_) and type_.num_fields:
        children = [each_leaf(child, change) for child in array.flatten()]
        fields = [f.with_type(c.type) for f, c in zip(type_, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=missing)
    if pa.types.is_map(type_):
        entries = each_leaf(array.cast(pa.list_(type_.field(0))), change)
        keys, items = entries.values.field(0), entries.values.field(1)
        return pa.MapArray.from_arrays(entries.offsets, keys, items, mask=missing)
    if is_list(type_):
        values = each_leaf(array.flatten(), change)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, values, mask=missing)
    return change(array)


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is a list in any of Arrow's layouts; maps are not."""
    return any(test(type_) for test in _LISTS)


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGITS = [place for place in range(36) if place not in (8, 13, 18, 23)]


def uuid_texts(column: pa.FixedSizeBinaryArray) -> pa.Array:
    """UUIDs of 16 bytes as texts of 36 characters."""
    filled = column.fill_null(bytes(16))
    raw = np.frombuffer(filled.buffers()[1], np.uint8, 16 * len(column), 16 * filled.offset)
    texts = np.full((len(column), 36), ord("-"), np.uint8)
    texts[:, _DIGITS] = _HEX[np.stack([raw >> 4, raw & 15], -1)].reshape(-1, 32)
    made = pa.Array.from_buffers(pa.binary(36), len(column), [None, pa.py_buffer(texts)])
    return pc.if_else(column.is_valid(), made.cast(pa.binary()).cast(pa.string()), None)
