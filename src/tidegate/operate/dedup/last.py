"""The operator of DISTINCT ON ... KEEP LAST: keeps the last tuple of each key within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, TS, ints
from tidegate.calendar.duration import duration_text
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
"""The part of the state with the newest tuple of each key that has a group open."""

BEGUN = "begun"
"""The column with the time of the first tuple of a group. A group is the tuples of a key that are
at most `within_us` after its first tuple."""


@dataclass(frozen=True)
class LastKeeper(KeyedKeeper):
    """Keeps the newest tuple of each group until the time of the group has passed."""

    order: str = BEGUN
    keys: tuple[str, ...] = ()

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_hash(newest(rows, self.keys))


@dataclass(frozen=True)
class LastOfKey(KeyedOperator):
    """Puts out the last tuple of each group: of a key, at most `within_us` after the first.

    The group is decided when the frontier is past first + within: the next tuple of the key begins
    a new group. The state has a row for each open group, and older rows until they are compacted.
    `columns` are the keys, and the columns that are put out.
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
        """The stored tuples of the instance's own keys whose groups are decided now."""
        own = BucketSet.of(work.mapping.owned_by(work.instance))
        mine = work.mapping.owner_array == work.instance
        found = []
        for rows in stored(work, LAST_TUPLES, self.keeper.columns, own, due_us):
            wanted = (ints(rows, BEGUN) < due_us) & mine[ints(rows, "bucket")]
            found += [rows.filter(pa.array(wanted))] if wanted.any() else []
        return found

    def begun(self, held: Sequence[pa.Table], tuples: pa.Table) -> pa.Table:
        """Add the column BEGUN to tuples, which must be in the total order.

        `held` are stored tuples; those of the same keys say which groups are open.
        """
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
    """The last tuple of each group, sorted by key and time."""
    rows = rows.combine_chunks()
    codes = KeyCodes.of([flat(rows.column(k)) for k in keys], rows.num_rows).codes
    begun = ints(rows, BEGUN)
    order = np.lexsort([*(ints(rows, name) for name in reversed(ORDER)), begun, codes])
    codes, begun = codes[order], begun[order]
    last = np.append(run_starts(codes, begun)[1:], True)[: len(codes)]
    return rows.take(pa.array(order[last]))


def _filled(codes: Ints, begins: Ints, tuples: pa.Table, first: Ints) -> Ints:
    """For each tuple the time of the last tuple of its key, up to itself, that begins a group.

    Before the first such tuple it is the `first` of the key: its group began in an earlier batch.
    """
    order = np.argsort(codes, kind="stable")
    sorted_codes, ts = codes[order], ints(tuples, TS)[order]
    starts = np.asarray(begins)[order]
    value = np.where(starts, ts, first[sorted_codes])
    marks = np.where(starts | run_starts(sorted_codes), np.arange(len(order)), 0)
    filled = value[np.maximum.accumulate(marks)]
    result = np.empty(len(order), np.int64)
    result[order] = filled
    return result
