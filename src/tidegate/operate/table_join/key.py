"""Numbers the keys of a table's rows, and finds the numbers of the keys of tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.order import Ints, canonical, flat, integers, valid

NO_KEY = -1
"""The number of a key that no row of the table has."""

_DENSE = 4
"""Integers are looked up in an array where it has at most so many places for each of them."""


class KeyColumn:
    """The values of one key column: each distinct one has a number from 0 on.

    NULL has none, unless it is `null_safe`; NaN equals NaN, and -0.0 equals 0.0.
    """

    def __init__(self, values: pa.Array, null_safe: bool) -> None:
        self._null_safe = null_safe
        distinct = canonical(flat(values)).unique()
        self._distinct = distinct if null_safe else distinct.drop_null()
        self.size = len(self._distinct)
        self._places: Ints | None = None
        """The numbers of the integers after `_before`, with a place for others at each end."""
        self._before = np.int64(0)
        if self.size and not null_safe and _is_integer(distinct.type):
            self._array(integers(self._distinct))

    def _array(self, keys: Ints) -> None:
        low, high = int(keys.min()), int(keys.max())
        if high - low <= _DENSE * len(keys) + 65_536 and low > np.iinfo(np.int64).min:
            self._before = np.int64(low - 1)
            self._places = np.full(high - low + 3, NO_KEY, np.int64)
            self._places[keys - self._before] = np.arange(len(keys))

    def numbers(self, values: pa.Array) -> Ints:
        """The number of each value."""
        values = flat(values)
        if self._places is None:
            found = pc.index_in(
                canonical(values), value_set=self._distinct, skip_nulls=not self._null_safe
            )
            numbers: Ints = found.fill_null(NO_KEY).to_numpy(zero_copy_only=False)
            return numbers.astype(np.int64)
        known = valid(values)
        if known is not None:
            values = values.fill_null(self._distinct[0])
        # Differences wrap around, and only those of keys inside are within the array.
        found = self._places.take(integers(values) - self._before, mode="clip")
        return found if known is None else np.where(known, found, NO_KEY)


class TableKeys:
    """The keys of a table: a number for each that its rows have, of all key columns together."""

    def __init__(self, columns: Sequence[pa.Array], null_safe: Sequence[bool], rows: int) -> None:
        self._columns = [KeyColumn(c, safe) for c, safe in zip(columns, null_safe, strict=True)]
        self._known: list[Ints] = []
        """After each further column, the numbers of all columns so far that occur, ascending."""
        self.numbers, self.size = np.zeros(rows, np.int64), 1
        if self._columns:
            self.numbers, self.size = self._columns[0].numbers(columns[0]), self._columns[0].size
        for column, values in zip(self._columns[1:], columns[1:], strict=True):
            joined = _joined(self.numbers, column.numbers(values), column.size)
            known = np.unique(joined[joined != NO_KEY])
            self._known.append(known)
            self.numbers, self.size = _places(known, joined), len(known)

    def of(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        """The number of each key that the columns of tuples make, NO_KEY where no row has it."""
        if not self._columns:
            return np.zeros(rows, np.int64)
        numbers = self._columns[0].numbers(columns[0])
        further = zip(self._columns[1:], columns[1:], self._known, strict=True)
        for column, values, known in further:
            numbers = _places(known, _joined(numbers, column.numbers(values), column.size))
        return numbers


def _joined(left: Ints, right: Ints, size: int) -> Ints:
    return np.where((left == NO_KEY) | (right == NO_KEY), NO_KEY, left * size + right)


def _places(known: Ints, numbers: Ints) -> Ints:
    """Where numbers are among those that are known."""
    if not len(known):
        return np.full(len(numbers), NO_KEY, np.int64)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[at] == numbers, at, NO_KEY)


def _is_integer(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_date32(type_))
