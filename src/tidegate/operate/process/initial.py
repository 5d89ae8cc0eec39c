"""Finds the initial state of keys in the rows of a table.

The table stays in memory as it was read. A key that never comes costs its row and 16 bytes of an
index. A row becomes Python values only when an object asks for its key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.operate.kernels.order import flat
from tidegate.operate.process.definition import InitialState
from tidegate.operate.process.initial_key import InitialKeys, one_word, words_of
from tidegate.operate.process.tuple import python_values
from tidegate.route.bucket import bucket_of
from tidegate.schema import event_times


class InitialEntry(NamedTuple):
    """The initial entry of a key in a map.

    `number` is negative and ascends with the rows of the table, so that a map iterates over these
    entries first, in the order of the table.
    """

    key: Any
    value: Any
    number: int
    until_us: int


class InitialIndex:
    """An index of a table of initial state by bucket and key; built once in each OS process."""

    def __init__(self, initial: InitialState, buckets: int, rows: pa.Table) -> None:
        self._rows = rows
        self._states = dict(initial.states)
        keys = [flat(rows.column(name)) for name in initial.keys]
        self._keys = [InitialKeys(key) for key in keys]
        bucket, words = bucket_of(keys, buckets), words_of(self._keys)
        order = np.lexsort((words, bucket))
        self._order = order.data
        self._words = words[order].data
        self._starts = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
        self._set_us = None
        if initial.time is not None:
            self._set_us = event_times(rows.column(initial.time))[0]

    def map(self, bucket: int, state: str) -> InitialMap | None:
        """The initial entries of a map in a bucket; None where the table has no such column."""
        return InitialMap(self, state, bucket) if state in self._states else None

    def find(self, bucket: int, key: Any) -> int | None:
        """The row of a key in a bucket; None where the table has none."""
        parts = (key,) if len(self._keys) == 1 else key
        if len(self._keys) > 1 and (type(key) is not tuple or len(key) != len(self._keys)):
            return None
        word = one_word(self._keys, parts)
        if word is None:
            return None
        low, high = self._starts[bucket : bucket + 2]
        place = bisect_left(self._words, word, low, high)
        while place < high and self._words[place] == word:
            if self.key(self._order[place]) == key:
                return self._order[place]
            place += 1
        return None

    def rows(self, bucket: int) -> list[int]:
        """The rows of a bucket, in the order of the table."""
        low, high = self._starts[bucket : bucket + 2]
        return sorted(self._order[low:high])

    def key(self, row: int) -> Any:
        """The key of a row, as objects see it."""
        parts = [column.value(row) for column in self._keys]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def entry(self, state: str, row: int) -> InitialEntry | None:
        """The entry that a row has for a map; None where its cell is NULL."""
        (value,) = python_values(self._rows.column(state).slice(row, 1))
        if value is None:
            return None
        ttl_us, until_us = self._states[state], MAX_US
        if ttl_us is not None:
            assert self._set_us is not None
            until_us = min(int(self._set_us[row]) + ttl_us, MAX_US)
        return InitialEntry(self.key(row), value, row - self._rows.num_rows, until_us)


@dataclass(frozen=True)
class InitialMap:
    """The initial entries of one map in one bucket."""

    index: InitialIndex
    state: str
    bucket: int

    def find(self, key: Any) -> InitialEntry | None:
        """The entry of a key; None where the table has none."""
        row = self.index.find(self.bucket, key)
        return None if row is None else self.index.entry(self.state, row)

    def entries(self) -> Iterator[InitialEntry]:
        """All entries of the bucket, in the order of the table."""
        found = (self.index.entry(self.state, row) for row in self.index.rows(self.bucket))
        return (entry for entry in found if entry is not None)
