"""The operator of DISTINCT ON ... KEEP LAST: of each key the last tuple within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, TS, ints
from tidegate.duration import duration_text
from tidegate.operate.kernels.dedup_loop import compiled_first, first_within
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.keyed_operator import KeyedOperator, KeyedStep
from tidegate.operate.keyed_state import (
    FEW,
    KeyedKeeper,
    by_hash,
    needed_from,
    read_keys,
    stored,
    write_keys,
)
from tidegate.operate.operator import InstanceWork, OperatorState
from tidegate.operate.tuple_rows import DECISION_ORDER, decided_rows, in_total_order
from tidegate.state.bucket_set import BucketSet

LAST_TUPLES = "last"
"""What the segments hold: the newest tuple of each key whose time has not passed."""

BEGUN = "begun"
"""The column with the time of the first tuple of a group: of a key, within the time."""


@dataclass(frozen=True)
class LastKeeper(KeyedKeeper):
    """Tuples of groups, until the time of their group has passed; newer ones replace older."""

    order: str = BEGUN
    keys: tuple[str, ...] = ()

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_hash(newest(rows, self.keys))


@dataclass(frozen=True)
class LastOfKey(KeyedOperator):
    """Puts out the last tuple of a key that is at most `within_us` after the first.

    It is decided when the frontier is past first + within: the next tuple of the key is a first
    one. The state is a row for each key that has begun, and rows that newer ones replace until
    they are compacted. `columns` are those of tuples that are put out, and the keys.
    """

    kind: ClassVar[str] = "distinct"

    keys: tuple[str, ...]
    within_us: int
    columns: tuple[str, ...]

    order = DECISION_ORDER
    task = "keeps a tuple of each key"

    @property
    def key_names(self) -> Sequence[str]:
        return self.keys

    @property
    def keeper(self) -> LastKeeper:
        return LastKeeper(self.within_us, (BEGUN, *self.columns), keys=self.keys)

    @property
    def state(self) -> OperatorState:
        return OperatorState({LAST_TUPLES: self.keeper}, "it must know the keys that have begun")

    def advance(self, work: InstanceWork, tuples: pa.Table | None) -> KeyedStep | None:
        due_us = needed_from(work.frontier_us, self.within_us)
        held = self._due(work, due_us)
        if tuples is not None:
            tuples = in_total_order(tuples)
            found = read_keys(work, LAST_TUPLES, self.keeper.columns, tuples)
            held += [found] if found.num_rows else []
        work.spans.mark("instance read state")
        # A group that earlier batches put out may still be stored, until its segment is compacted.
        since = needed_from(work.previous_us, self.within_us)
        held = [rows.filter(pa.array(ints(rows, BEGUN) >= since)) for rows in held]
        parts = [newest(pa.concat_tables(held), self.keys)] if held else []
        new = None if tuples is None else self.begun(parts, tuples).select(self.keeper.columns)
        parts += [] if new is None else [new]
        if not parts:
            return None
        rows = newest(pa.concat_tables(parts, promote_options="permissive"), self.keys)
        work.spans.mark("instance advance")
        due = ints(rows, BEGUN) < due_us
        kept = rows.filter(pa.array(~due & (ints(rows, TS) >= work.previous_us)))
        segments = write_keys(work, self.keeper, kept, LAST_TUPLES)
        decided = rows.filter(pa.array(due))
        instants = ints(decided, BEGUN) + self.within_us
        output = partial(decided_rows, tuples=decided, instants=instants)
        return KeyedStep(output, rows, {LAST_TUPLES: segments})

    def _due(self, work: InstanceWork, due_us: int) -> list[pa.Table]:
        """The stored tuples of own keys whose groups end before the frontier."""
        own = BucketSet.of(work.mapping.owned_by(work.instance))
        mine = work.mapping.owner_array == work.instance
        found = []
        for rows in stored(work, LAST_TUPLES, self.keeper.columns, own, due_us):
            wanted = (ints(rows, BEGUN) < due_us) & mine[ints(rows, "bucket")]
            found += [rows.filter(pa.array(wanted))] if wanted.any() else []
        return found

    def begun(self, held: Sequence[pa.Table], tuples: pa.Table) -> pa.Table:
        """Tuples with the time of the first of their group; they are in the total order."""
        keys = KeyCodes.of([flat(tuples.column(k)) for k in self.keys], tuples.num_rows)
        first = np.full(keys.n, MIN_US)
        for rows in held:
            codes = keys.find([flat(rows.column(k)) for k in self.keys], rows.num_rows)
            np.maximum.at(first, codes[codes >= 0], ints(rows, BEGUN)[codes >= 0])
        until = np.where(first == MIN_US, MIN_US, first + self.within_us)
        loop = first_within if tuples.num_rows < FEW else compiled_first()
        begins = loop(keys.codes, ints(tuples, TS), until, self.within_us)
        return tuples.append_column(BEGUN, pa.array(_filled(keys.codes, begins, tuples, first)))

    def title(self) -> str:
        return f"the last tuple of each key within {duration_text(self.within_us)}"


def newest(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The last tuple of each group, in the order of keys and time."""
    rows = rows.combine_chunks()
    codes = KeyCodes.of([flat(rows.column(k)) for k in keys], rows.num_rows).codes
    begun = ints(rows, BEGUN)
    order = np.lexsort([*(ints(rows, name) for name in reversed(ORDER)), begun, codes])
    codes, begun = codes[order], begun[order]
    last = np.append(run_starts(codes, begun)[1:], True)[: len(codes)]
    return rows.take(pa.array(order[last]))


def _filled(codes: Ints, begins: Ints, tuples: pa.Table, first: Ints) -> Ints:
    """By tuple the time of the last one of its key that begins a group, or `first` of the key."""
    order = np.argsort(codes, kind="stable")
    sorted_codes, ts = codes[order], ints(tuples, TS)[order]
    starts = np.asarray(begins)[order]
    value = np.where(starts, ts, first[sorted_codes])
    marks = np.where(starts | run_starts(sorted_codes), np.arange(len(order)), 0)
    filled = value[np.maximum.accumulate(marks)]
    result = np.empty(len(order), np.int64)
    result[order] = filled
    return result
