"""Codes the keys of several tables as integers, so that equal keys have equal codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask, flat, valid
from tidegate.route.bucket import hash_of

Keys = Sequence[pa.Array | pa.ChunkedArray]


def shared_codes(tables: Sequence[Keys], rows: Sequence[int]) -> tuple[KeyCodes, list[Ints]]:
    """The keys of some tables, coded together, and the codes of each table's rows."""
    columns = [pa.concat_arrays([flat(c) for c in parts]) for parts in zip(*tables, strict=True)]
    codes = KeyCodes.of(columns, sum(rows))
    return codes, np.split(codes.codes, np.cumsum(rows)[:-1])


def present(keys: Keys, rows: int) -> Mask:
    """Which rows have a key; a row with a NULL in it has none."""
    mask = np.ones(rows, np.bool_)
    for column in keys:
        known = valid(flat(column))
        if known is not None:
            mask &= known
    return mask


def hashed(keys: Keys, rows: int) -> Ints:
    """A hash of 62 bits for each row. It finds the rows of a key; equal hashes prove nothing."""
    if not keys:
        return np.zeros(rows, np.int64)
    return (hash_of([flat(k) for k in keys]) >> np.uint64(2)).astype(np.int64)
