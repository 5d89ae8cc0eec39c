"""The leaves of nested columns, between structs and lists and what is done with plain values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def each_leaf(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """An array in which every leaf of structs and lists is changed, of which it keeps the lengths.

    A leaf is an array of no such type; maps are leaves, too. What NULL hides is not shown to
    `change`. Costs no more than the changes and the offsets of the lists.
    """
    type_, missing = array.type, array.is_null()
    if pa.types.is_struct(type_) and type_.num_fields:
        children = [each_leaf(child, change) for child in array.flatten()]
        fields = [f.with_type(c.type) for f, c in zip(type_, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=missing)
    if pa.types.is_list(type_):
        values = each_leaf(array.flatten(), change)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, values, mask=missing)
    return change(array)
