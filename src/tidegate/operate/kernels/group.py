"""Numbers the keys of rows densely, in the order of the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.order import Ints, Mask, canonical, inverse, ordered, valid

_RADIX_LIMIT = 2**62


@dataclass(frozen=True)
class Rank:
    """An int64 in [0, size) per row, in the order of the values.

    Every number occurs if `full`; otherwise some may not. `distinct` or else `low` leads back to
    the integers that were ranked; see `integers_at`.
    """

    codes: Ints
    size: int
    full: bool = False
    low: int = 0
    distinct: Ints | None = None

    def integers_at(self, codes: Ints) -> Ints:
        """The integers with these numbers; only for a rank of `rank_integers` or `rank_close`."""
        return codes + self.low if self.distinct is None else self.distinct[codes]


class Groups:
    """The group of every row: `codes` int64 in [0, n), ascending in the order of the keys.

    Everything derived is computed when first asked for and kept; the arrays must not be written.
    """

    def __init__(self, raw: Ints, n: int, lookup: Ints | None = None) -> None:
        self.n = n
        self._raw = raw
        self._lookup = lookup

    @cached_property
    def codes(self) -> Ints:
        """The group of every row."""
        if self.n == 1:
            # `one_number` makes a broadcast view; compiled loops need an array with its own memory.
            return np.zeros(len(self._raw), np.int64)
        return self._raw if self._lookup is None else self._lookup[self._raw]

    @cached_property
    def counts(self) -> Ints:
        """How many rows each group has."""
        if self.n == 1:
            return np.array([len(self._raw)])
        return np.bincount(self.codes, minlength=self.n).astype(np.int64, copy=False)

    @cached_property
    def rows(self) -> Ints:
        """The last row of each group; every group must have a row."""
        if self.n == 1:
            return np.array([len(self._raw) - 1])
        result = np.empty(self.n, np.int64)
        result[self.codes] = np.arange(len(self.codes))
        return result

    @cached_property
    def order(self) -> Ints:
        """The rows sorted by group, in their given order within each."""
        return stable_order(self.codes, self.n)

    @cached_property
    def starts(self) -> Ints:
        """Where each group begins in `order`."""
        return np.cumsum(self.counts) - self.counts

    @property
    def ranked(self) -> Rank:
        """The group of every row as a rank, for `pack`."""
        return one_number(len(self._raw)) if self.n == 1 else Rank(self.codes, self.n)

    def where(self, mask: Mask | None) -> Groups:
        """The same groups over the marked rows only; some may be left empty."""
        return self if mask is None else Groups(self.codes[mask], self.n)

    def reorder(self, permutation: Ints) -> Groups:
        """The same groups, numbered anew: the i-th is now the one that was permutation[i]."""
        to = inverse(permutation)
        return Groups(self._raw, self.n, to if self._lookup is None else to[self._lookup])


def stable_order(codes: Ints, size: int) -> Ints:
    """The stable sorting permutation of int64 numbers in [0, size), by radix passes of 16 bits.

    numpy's stable sort of uint16 is a radix sort itself: so this is linear in the rows.
    """
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while size > 1 << shift:
        digit = ((codes >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += 16
    return order.astype(np.int64, copy=False)


def rank(column: pa.Array) -> Rank:
    """Rank a key column: NULL first, all NaN equal and last, -0.0 equal to 0.0."""
    mask = valid(column)
    if mask is None:
        return rank_integers(ordered(canonical(column)).keys)
    present = rank_integers(ordered(canonical(column.drop_null())).keys)
    codes = np.zeros(len(column), np.int64)
    codes[mask] = present.codes + 1
    return Rank(codes, present.size + 1)


def rank_close(keys: Ints) -> Rank | None:
    """Rank integers by subtracting the least; None where they do not lie close together."""
    if len(keys) == 0:
        return Rank(keys, 1)
    low, high = int(keys.min()), int(keys.max())
    if high - low >= 2 * len(keys) + 1024:
        return None
    return Rank(keys if low == 0 else keys - low, high - low + 1, low=low)


def rank_integers(keys: Ints) -> Rank:
    """Rank integers: by subtraction where they lie close together, else by a dictionary."""
    close = rank_close(keys)
    if close is not None:
        return close
    indices, lookup, distinct = _dictionary(keys)
    return Rank(lookup[indices], len(distinct), full=True, distinct=distinct)


def one_number(rows: int, low: int = 0) -> Rank:
    """The rank of rows that are all equal; costs nothing. A single window or group is common."""
    return Rank(np.broadcast_to(np.int64(0), rows), 1, low=low)


def pack(ranks: Sequence[Rank], rows: int) -> Rank:
    """Combine the ranks of several columns into one, in lexicographic order.

    Where the product of the sizes would leave 62 bits, numbers that do not occur are squeezed out.
    """
    if not ranks:
        return one_number(rows)
    packed = ranks[0]
    for column in ranks[1:]:
        # Python integers cannot overflow here, int64 codes could: squeeze them in time.
        if packed.size * column.size > _RADIX_LIMIT:
            groups = dense(packed)
            packed = Rank(groups.codes, groups.n)
        if packed.size == 1:
            packed = column
        elif column.size > 1:
            codes = packed.codes * column.size + column.codes
            packed = Rank(codes, packed.size * column.size)
    return packed


def dense(packed: Rank) -> Groups:
    """Groups for the numbers that occur, in their order; each has at least one row."""
    return dense_with_numbers(packed)[0]


def dense_with_numbers(packed: Rank) -> tuple[Groups, Ints]:
    """Groups for the numbers that occur, in their order, and the number of each group."""
    codes, size = packed.codes, packed.size
    if len(codes) == 0:
        return Groups(codes, 0), codes
    if packed.full or size == 1:
        return Groups(codes, size), np.arange(size)
    # An array of all numbers costs less than a dictionary, unless most of it would be empty.
    if size > 4 * len(codes) + 1024:
        indices, lookup, distinct = _dictionary(codes)
        return Groups(indices, len(distinct), lookup), distinct
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    if len(present) == size:
        return Groups(codes, size), present
    lookup = np.zeros(size, np.int64)
    lookup[present] = np.arange(len(present))
    return Groups(codes, len(present), lookup), present


def _dictionary(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """An index per row, the rank of each index, and the distinct values in order of rank."""
    encoded = pa.array(keys).dictionary_encode()
    values = encoded.dictionary.to_numpy()
    order = np.argsort(values)
    return encoded.indices.to_numpy(), inverse(order), values[order]


def run_starts(*columns: Ints) -> Mask:
    """Marks the rows at which some column differs from the row before; the first row is marked."""
    starts = np.ones(len(columns[0]), np.bool_)
    starts[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return starts
