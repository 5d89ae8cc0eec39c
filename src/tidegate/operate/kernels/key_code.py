"""Numbers the keys of tuples, and finds the numbers of other tuples' keys among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.order import Ints, canonical


@dataclass(frozen=True)
class KeyCodes:
    """The number of every row's key, in [0, n) and in no order; equal keys have one number.

    NULL is a key, NaN equals NaN, -0.0 equals 0.0. `values` and `pairs` lead from a key to its
    number: the values of each column, and what the numbers up to a column were packed to.
    """

    codes: Ints
    n: int
    values: tuple[pa.Array, ...]
    pairs: tuple[pa.Array, ...]

    @staticmethod
    def of(columns: Sequence[pa.Array], rows: int) -> KeyCodes:
        """The keys of rows; without columns there is one key. Costs O(rows) for each column."""
        codes, n = np.zeros(rows, np.int64), min(rows, 1)
        values: list[pa.Array] = []
        pairs: list[pa.Array] = []
        for place, column in enumerate(columns):
            found, own = _numbered(canonical(column))
            values.append(own)
            if place:
                found, packed = _numbered(pa.array(codes * max(len(own), 1) + found))
                pairs.append(packed)
            codes, n = found, len(pairs[-1] if place else own)
        return KeyCodes(codes, n, tuple(values), tuple(pairs))

    def find(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        """The numbers of other rows' keys; -1 where no row here has the key."""
        codes = np.zeros(rows, np.int64)
        for place, (column, own) in enumerate(zip(columns, self.values, strict=True)):
            found = _looked_up(canonical(column), own)
            if place:
                packed = codes * max(len(own), 1) + found
                known = np.where((codes < 0) | (found < 0), -1, packed)
                found = _looked_up(pa.array(known), self.pairs[place - 1])
            codes = found
        return codes

    @property
    def rows(self) -> Ints:
        """A row of each key, the last."""
        found = np.empty(self.n, np.int64)
        found[self.codes] = np.arange(len(self.codes))
        return found


def _numbered(column: pa.Array) -> tuple[Ints, pa.Array]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def _looked_up(column: pa.Array, values: pa.Array) -> Ints:
    places = pc.index_in(column, value_set=values)
    found: Ints = places.fill_null(-1).to_numpy().astype(np.int64)
    return found
