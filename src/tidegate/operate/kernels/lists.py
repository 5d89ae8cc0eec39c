"""Sizes and groups of the values inside columns of lists, which hold no NULL list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints


def list_sizes(lists: pa.Array) -> Ints:
    """How many values each list has."""
    sizes: Ints = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return sizes


def list_bounds(lists: pa.Array, places: Ints) -> Ints:
    """Where lists begin among the values of all lists; place len(lists) is where the last ends."""
    return np.append(0, np.cumsum(list_sizes(lists)))[places]


def inside_lists(groups: Groups, lists: pa.Array) -> Groups:
    """The groups of the values inside the lists, from the groups of the lists."""
    return Groups(np.repeat(groups.codes, list_sizes(lists)), groups.n)


def list_offsets(counts: Ints) -> pa.Array:
    """The offsets of an array of lists of these sizes."""
    return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))


def as_lists(sizes: Ints, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The values of each column as lists of these sizes, one list after the other."""
    offsets = list_offsets(sizes)
    return [pa.ListArray.from_arrays(offsets, column) for column in columns]
