"""Codes the keys of rows as integers, and finds the codes of other rows' keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.operate.kernels.group import dense_with_numbers, rank_close
from tidegate.operate.kernels.order import Ints, canonical, flat, integers, ordered, valid

NO_KEY = -1
"""The code of an unknown key, and of NULL where NULL is no key."""

_DENSE, _FEW = 4, 65_536
"""Integers are looked up in an array if its size is at most _DENSE times their number plus _FEW."""

Columns = Sequence[pa.Array | pa.ChunkedArray]


@dataclass(frozen=True)
class ColumnCodes:
    """The distinct values of one column; the code of a value is its place among them.

    NaN equals NaN, and -0.0 equals 0.0.
    """

    distinct: pa.Array

    @staticmethod
    def of(column: pa.Array | pa.ChunkedArray, null: bool) -> tuple[Ints, ColumnCodes]:
        """The code of every row's value, and the codes; NULL is NO_KEY unless `null` is a value."""
        column = canonical(flat(column))
        close = rank_close(integers(column)) if _is_integer(column) else None
        if close is not None:
            groups, numbers = dense_with_numbers(close)
            return groups.codes, ColumnCodes(ordered(column).decode(close.integers_at(numbers)))
        encoded = column.dictionary_encode(null_encoding="encode" if null else "mask")
        return _numbers(encoded.indices), ColumnCodes(encoded.dictionary)

    def find(self, column: pa.Array | pa.ChunkedArray) -> Ints:
        """The code of every row's value, NO_KEY for values that have none."""
        column = flat(column)
        if self._places is None:
            return _numbers(pc.index_in(canonical(column), value_set=self.distinct))
        before, places = self._places
        known = valid(column)
        if known is not None:
            column = column.fill_null(self.distinct[0])
        # The array has an entry before the least key and one after the greatest, both NO_KEY.
        # Clipping takes all other keys there, also where the subtraction has wrapped around.
        found = places.take(integers(column) - before, mode="clip")
        return found if known is None else np.where(known, found, NO_KEY)

    @cached_property
    def _places(self) -> tuple[np.int64, Ints] | None:
        """The integer before the least key, and an array of codes from there on.

        None where the keys are too far apart for an array.
        """
        if not len(self.distinct) or not _is_integer(self.distinct):
            return None
        keys = integers(self.distinct)
        low, high = int(keys.min()), int(keys.max())
        if high - low > _DENSE * len(keys) + _FEW or low == np.iinfo(np.int64).min:
            return None
        before = np.int64(low - 1)
        places = np.full(high - low + 3, NO_KEY, np.int64)
        places[keys - before] = np.arange(len(keys))
        return before, places


@dataclass(frozen=True)
class KeyCodes:
    """The code of every row's key, in [0, n); equal keys have one code, in no particular order.

    NULL is a key like others, or a row with it has NO_KEY. `columns` and `pairs` lead from a key to
    its code: `columns` has the codes of each column's values, and `pairs` the codes of the codes up
    to a column, packed with those of the column.
    """

    codes: Ints
    n: int
    columns: tuple[ColumnCodes, ...]
    pairs: tuple[ColumnCodes, ...]

    @staticmethod
    def of(columns: Columns, rows: int, nulls: Sequence[bool] | None = None) -> KeyCodes:
        """Code the keys of rows; without columns all have one key. O(rows) for each column.

        `nulls` says for each column whether NULL is a key; by default it is.
        """
        codes, n = np.zeros(rows, np.int64), min(rows, 1)
        each: list[ColumnCodes] = []
        pairs: list[ColumnCodes] = []
        for place, column in enumerate(columns):
            found, own = ColumnCodes.of(column, nulls is None or nulls[place])
            each.append(own)
            last = own
            if place:
                found, last = ColumnCodes.of(_packed(codes, found, own), null=False)
                pairs.append(last)
            codes, n = found, len(last.distinct)
        return KeyCodes(codes, n, tuple(each), tuple(pairs))

    def find(self, columns: Columns, rows: int) -> Ints:
        """The codes of other rows' keys; NO_KEY where no coded row has the key."""
        codes = np.full(rows, 0 if self.n else NO_KEY, np.int64)
        for place, (column, own) in enumerate(zip(columns, self.columns, strict=True)):
            found = own.find(column)
            codes = self.pairs[place - 1].find(_packed(codes, found, own)) if place else found
        return codes

    @property
    def rows(self) -> Ints:
        """The last row of each key."""
        found = np.empty(self.n, np.int64)
        found[self.codes] = np.arange(len(self.codes))
        return found


def _packed(codes: Ints, found: Ints, own: ColumnCodes) -> pa.Array:
    """Two codes as one integer; NULL where one of them is NO_KEY."""
    lacking = (codes == NO_KEY) | (found == NO_KEY)
    return pa.array(codes * len(own.distinct) + found, mask=lacking)


def _is_integer(column: pa.Array) -> bool:
    """Whether all values are integers, or days."""
    type_ = column.type
    return not column.null_count and (pa.types.is_integer(type_) or pa.types.is_date32(type_))


def _numbers(places: pa.Array) -> Ints:
    numbers: Ints = places.fill_null(NO_KEY).to_numpy().astype(np.int64)
    return numbers
