"""The operator of LEAD: puts out a tuple when the later tuples of its key have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ORDER, TS, ints
from tidegate.operate.kernels.group import Groups, run_starts
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.keyed_operator import KeyedOperator, KeyedStep
from tidegate.operate.operator import BatchFacts, InstanceWork, OperatorState
from tidegate.operate.tuple_rows import DECISION_ORDER, decided_rows
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.state import (
    TUPLES,
    TupleKeeper,
    read_all,
    read_groups,
    write_tuples,
)
from tidegate.operate.tuple_window.window import live, stored_tuples

Typed = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class LeadColumn:
    """The value of the tuple `offset` places after in its key; `default` where none comes.

    With `skips_null` tuples whose value is NULL are not counted.
    """

    name: str
    result: pa.DataType
    value: str
    offset: int
    default: str | None = None
    skips_null: bool = False

    def later(self, tuples: pa.Table, ends: Ints) -> Ints:
        """The place of the tuple that each tuple shows; len(ends) where it has not come yet."""
        places, counted = np.arange(len(ends)), np.arange(len(ends))
        if self.skips_null:
            counted = np.flatnonzero(flat(tuples.column(self.value)).is_valid())
        number = np.searchsorted(counted, places, "right") + self.offset - 1
        found = np.append(counted, len(ends))[np.minimum(number, len(counted))]
        return np.where(found < ends, found, len(ends))

    def of(self, tuples: pa.Table, at: Ints, later: Ints) -> pa.Array:
        """Its value for the tuples at the places `at`, which show the tuples at `later`."""
        values, missing = flat(tuples.column(self.value)), later == tuples.num_rows
        if self.default is None:
            return values.take(pa.array(later, mask=missing))
        both = pa.concat_arrays([values, flat(tuples.column(self.default))])
        return both.take(pa.array(np.where(missing, len(values) + at, later)))


DONE = "done"
"""The column with the number of tuples of the key that were decided when a tuple was stored."""


@dataclass(frozen=True)
class WaitSpec(TupleSpec):
    """The state of waiting tuples: a tuple is dead once its rank is below the newest DONE."""

    def needed(self, counts: Ints, held: pa.Table, groups: Groups) -> Ints:
        decided = np.zeros(groups.n, np.int64)
        np.maximum.at(decided, groups.codes, ints(held, DONE))
        return decided


@dataclass(frozen=True)
class LeadTuples(KeyedOperator):
    """Adds columns to tuples; a tuple waits for the later tuples of its key that these look at.

    A tuple is decided at the time of the last tuple that it waits for. When no tuple can come any
    more, the ones that still wait are decided `reach_us` after the newest tuple of any source,
    which is later than any other row. The state is the waiting tuples: of each key as many as the
    columns look forward, and those in between that are not counted. `held` are the columns of the
    tuples.
    """

    kind: ClassVar[str] = "lead"

    keys: Typed
    held: Typed
    columns: tuple[LeadColumn, ...]
    reach_us: int
    newest_us: int = MIN_US

    order = DECISION_ORDER

    @property
    def key_names(self) -> Sequence[str]:
        return [name for name, _ in self.keys]

    @property
    def task(self) -> str:
        ahead = max(column.offset for column in self.columns)
        return f"a tuple waits for {'one more' if ahead == 1 else f'{ahead} more'} of its key"

    @property
    def spec(self) -> WaitSpec:
        return WaitSpec(1, 1, self.keys, (*self.held, (DONE, pa.int64())), ())

    @property
    def state(self) -> OperatorState:
        return OperatorState({TUPLES: TupleKeeper(self.spec)}, "tuples wait for those after them")

    def for_batch(self, facts: BatchFacts) -> LeadTuples:
        return replace(self, newest_us=facts.newest_us)

    def advance(self, work: InstanceWork, tuples: pa.Table | None) -> KeyedStep | None:
        spec = self.spec
        ends = work.frontier_us == MAX_US and work.previous_us != MAX_US
        if tuples is None and not ends:
            return None
        new = spec.state_schema.empty_table()
        if tuples is not None:
            none = np.zeros(tuples.num_rows, np.int64)
            new = stored_tuples(spec, tuples.append_column(DONE, pa.array(none)), none)
        waiting = read_all(work, spec) if ends else read_groups(work, spec, new)
        waiting = waiting.filter(pa.array(live(spec, waiting)))
        work.spans.mark("instance read state")
        rows = _by_key(spec, waiting, new)
        later = [column.later(rows.tuples, rows.ends) for column in self.columns]
        # The last tuple that a tuple waits for decides it; len(last) is one that has not come yet.
        last = np.maximum.reduce(later)
        waits = (last == len(last)) & (not ends)
        decided = np.flatnonzero(~waits)
        made = rows.tuples.take(pa.array(decided))
        for column, places in zip(self.columns, later, strict=True):
            made = made.append_column(column.name, column.of(rows.tuples, decided, places[decided]))
        ts = np.append(ints(rows.tuples, TS), self.newest_us + self.reach_us)
        instants = ts[last[decided]]
        work.spans.mark("instance advance")
        segments = {}
        if (kept := waits & rows.new).any():
            segments[TUPLES] = (write_tuples(work, spec, rows.kept(kept, waits)),)
        output = partial(decided_rows, tuples=made, instants=instants)
        return KeyedStep(output, rows.tuples, segments)

    def title(self) -> str:
        return f"{', '.join(column.name for column in self.columns)} over later tuples of each key"


@dataclass(frozen=True)
class _ByKey:
    """Tuples key after key, each key in the total order, with their ranks in the key.

    For each place: `starts` and `ends` of its key, and whether its tuple is `new`.
    """

    tuples: pa.Table
    starts: Ints
    ends: Ints
    new: Mask

    def kept(self, which: Mask, waits: Mask) -> pa.Table:
        """The tuples that `which` marks, with DONE set; `waits` marks all that wait.

        The waiting tuples of a key are its last ones, so the rank of the first of them is the
        number of tuples that were decided.
        """
        before = np.append(0, np.cumsum(waits))
        first = self.ends - (before[self.ends] - before[self.starts])
        done = pa.array(ints(self.tuples, "rank")[first[which]])
        tuples = self.tuples.filter(pa.array(which))
        return tuples.set_column(tuples.schema.get_field_index(DONE), DONE, done)


def _by_key(spec: TupleSpec, waiting: pa.Table, new: pa.Table) -> _ByKey:
    """Sort all tuples by key; the ranks of new tuples continue those of the waiting ones."""
    both = pa.concat_tables([waiting, new])
    keys = [flat(both.column(name)) for name, _ in spec.keys]
    code = KeyCodes.of(keys, both.num_rows).codes
    order = np.lexsort([*(ints(both, name) for name in reversed(ORDER)), code])
    both, code = both.take(pa.array(order)), code[order]
    starts = np.flatnonzero(run_starts(code))
    counts = np.diff(np.append(starts, len(code)))
    first = np.repeat(starts, counts)
    ranks = ints(both, "rank")[first] + np.arange(len(code)) - first
    both = both.set_column(both.schema.get_field_index("rank"), "rank", pa.array(ranks))
    ends = np.repeat(starts + counts, counts)
    return _ByKey(both, first, ends, order >= waiting.num_rows)
