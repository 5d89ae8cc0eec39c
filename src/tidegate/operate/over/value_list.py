"""LAG IGNORE NULLS, and NTH_VALUE: both count values of a key, not its tuples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.kernels.lists import as_lists
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.window.window import expand
from tidegate.operate.over.frame import Frame
from tidegate.operate.over.run import KeyRuns

Typed = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class KeyValues:
    """The values that count, key after key, each key in the total order.

    `before` has the number of values before each place, and before the end.
    """

    values: pa.Array
    before: Ints

    @staticmethod
    def of(runs: KeyRuns, name: str, skips_null: bool, stored: str | None) -> KeyValues:
        """The values of a column.

        With `stored`, the newest stored tuple of a key has a list in that column, which replaces
        the values of the stored tuples.
        """
        values, places = runs.column(name), np.arange(len(runs.starts))
        counts = np.ones(len(places), np.int64)
        if skips_null:
            counts[~values.is_valid().to_numpy(zero_copy_only=False)] = 0
        if stored is None:
            own, rows = values.filter(pa.array(counts > 0)), places[counts > 0]
        else:
            counts[places < runs.fresh] = 0
            at, new = np.flatnonzero(runs.last_stored), np.flatnonzero(counts)
            lists = runs.column(stored).take(pa.array(at))
            counts[at] = lists.value_lengths().fill_null(0).to_numpy()
            own = pa.concat_arrays([lists.flatten(), values.take(pa.array(new))])
            rows = np.concatenate([np.repeat(at, counts[at]), new])
        order = pa.array(np.argsort(rows, stable=True))
        return KeyValues(own.take(order), np.append(0, np.cumsum(counts)))

    def lists(self, first: Ints, last: Ints) -> pa.Array:
        """Lists of values: for each pair the values from number `first` up to before `last`."""
        _, numbers = expand(first, last - 1)
        (lists,) = as_lists(last - first, [self.values.take(pa.array(numbers))])
        return lists


@dataclass(frozen=True)
class LagValueColumn:
    """The value `offset` places before in its key, not counting NULL, or the column `default`.

    It keeps the last `offset` values of each key.
    """

    name: str
    result: pa.DataType
    value: str
    offset: int
    default: str | None = None
    rows = 0
    reach_us = 0

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.value,) if self.default is None else (self.value, self.default)

    @property
    def state(self) -> Typed:
        return ((f"{self.name}_last", pa.list_(self.result)),)

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        ((name, _),) = self.state
        found = KeyValues.of(runs, self.value, True, name)
        begins = found.before[runs.starts]
        number = found.before[runs.at] - self.offset
        there = number >= begins[runs.at]
        last = found.before[runs.newest + 1]
        kept = found.lists(np.maximum(begins[runs.newest], last - self.offset), last)
        if self.default is None:
            return found.values.take(pa.array(number, mask=~there)), {name: kept}
        both = pa.concat_arrays([found.values, runs.column(self.default)])
        rows = np.where(there, number, len(found.values) + runs.at)
        return both.take(pa.array(rows)), {name: kept}


@dataclass(frozen=True)
class NthColumn:
    """The value of the frame's tuple with this number, from 1 on; NULL where there is none.

    For a running frame it keeps the first `number` values of each key.
    """

    name: str
    result: pa.DataType
    value: str
    number: int
    frame: Frame
    skips_null: bool

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.value,)

    @property
    def rows(self) -> int:
        return self.frame.rows

    @property
    def reach_us(self) -> int:
        return self.frame.reach_us

    @property
    def state(self) -> Typed:
        return ((f"{self.name}_first", pa.list_(self.result)),) if self.frame.running else ()

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        stored = next((name for name, _ in self.state), None)
        found = KeyValues.of(runs, self.value, self.skips_null, stored)
        first, last = self.frame.bounds(runs)
        number = found.before[first] + self.number - 1
        missing = number >= found.before[last]
        values = found.values.take(pa.array(number, mask=missing))
        if stored is None:
            return values, {}
        begins, ends = found.before[runs.starts[runs.newest]], found.before[runs.newest + 1]
        return values, {stored: found.lists(begins, np.minimum(ends, begins + self.number))}
