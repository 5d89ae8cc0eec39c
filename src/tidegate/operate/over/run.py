"""Puts the stored and new tuples of each key in one run, so that frames are ranges of places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask, flat, inverse


@dataclass(frozen=True)
class KeyRuns:
    """Tuples key after key; in each key the stored ones, then the new ones, in the total order.

    For each place: `starts` and `ends` of its key, and `fresh`, where the key's new tuples begin.
    `at` are the places of all new tuples, ascending. `arrived` has the place of each new tuple in
    the order in which they came.
    """

    tuples: pa.Table
    starts: Ints
    ends: Ints
    fresh: Ints
    at: Ints
    arrived: Ints

    @staticmethod
    def of(held: pa.Table, news: pa.Table, keys: Sequence[str], names: Sequence[str]) -> KeyRuns:
        """Runs with the columns `names` and the order; a column that one side lacks is NULL there.

        `held` may have tuples of other keys. A new tuple must be after the held ones of its key.
        """
        codes = KeyCodes.of([flat(news.column(k)) for k in keys], news.num_rows)
        before = codes.find([flat(held.column(k)) for k in keys], held.num_rows)
        held = held.filter(pa.array(before >= 0))
        code = np.concatenate([before[before >= 0], codes.codes])
        columns = {n: _both(held, news, n) for n in dict.fromkeys((*ORDER, *names))}
        both = pa.table(columns)
        order = np.lexsort([*(ints(both, name) for name in reversed(ORDER)), code])
        code = code[order]
        new = run_starts(code)
        number = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(code)))
        is_new = order >= held.num_rows
        stored = counts - np.bincount(number[is_new], minlength=len(starts))
        to = inverse(order.astype(np.int64))
        return KeyRuns(
            tuples=both.take(pa.array(order)).combine_chunks(),
            starts=starts[number],
            ends=(starts + counts)[number],
            fresh=(starts + stored)[number],
            at=np.flatnonzero(is_new),
            arrived=to[held.num_rows :],
        )

    def column(self, name: str) -> pa.Array:
        return flat(self.tuples.column(name))

    @cached_property
    def ts(self) -> Ints:
        return ints(self.tuples, TS)

    @cached_property
    def last_stored(self) -> Mask:
        """Marks the newest stored tuple of each key."""
        found: Mask = np.arange(len(self.starts)) == self.fresh - 1
        return found

    @cached_property
    def newest(self) -> Ints:
        """The place of the newest tuple of each key."""
        return np.unique(self.ends) - 1

    def in_order(self, values: pa.Array) -> pa.Array:
        """Bring values of new tuples from the order of places into the order of arrival."""
        return values.take(pa.array(np.searchsorted(self.at, self.arrived)))


def _both(held: pa.Table, news: pa.Table, name: str) -> pa.ChunkedArray:
    type_ = (news if name in news.column_names else held).schema.field(name).type
    parts = [
        flat(t.column(name), type_) if name in t.column_names else pa.nulls(t.num_rows, type_)
        for t in (held, news)
    ]
    return pa.chunked_array(parts, type_)
