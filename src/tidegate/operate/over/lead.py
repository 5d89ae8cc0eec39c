"""The operator of LEAD: every tuple with values of later ones of its key, once these have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ORDER, TS, ints
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.keyed_state import deal_by_key
from tidegate.operate.operator import (
    Arrival,
    BatchFacts,
    InstanceWork,
    MapWork,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.own_time import DECISION_ORDER, decided_rows
from tidegate.operate.tuple_window.state import (
    TUPLES,
    TupleKeeper,
    read_all,
    read_groups,
    write_tuples,
)
from tidegate.operate.tuple_window.window import TupleSpec, live, stored_tuples
from tidegate.route.hash import BY_HASH

Typed = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class LeadColumn:
    """The value of the tuple so many after in its key; another column's where none comes."""

    name: str
    result: pa.DataType
    value: str
    offset: int
    default: str | None = None

    def of(self, tuples: pa.Table, at: Ints, ends: Ints) -> pa.Array:
        """Its value for the tuples at these places, whose keys end before `ends`."""
        later = at + self.offset
        there = later < ends
        values = flat(tuples.column(self.value))
        if self.default is None:
            return values.take(pa.array(later, mask=~there))
        both = pa.concat_arrays([values, flat(tuples.column(self.default))])
        return both.take(pa.array(np.where(there, later, len(values) + at)))


@dataclass(frozen=True)
class LeadTuples(Operator):
    """Adds columns to tuples, which wait for as many later ones of their key as these look at.

    A tuple is decided at the instant of the last one that it waits for. When no tuple can come any
    more, those that still wait are decided `reach_us` after the newest tuple that any source has
    brought: no other row is as late. The state is the tuples that wait, of each key as many as the
    columns look forward. `held` are the columns of tuples.
    """

    kind: ClassVar[str] = "lead"

    keys: Typed
    held: Typed
    columns: tuple[LeadColumn, ...]
    reach_us: int
    newest_us: int = MIN_US

    partitioner = BY_HASH
    order = DECISION_ORDER
    traits = Traits(deals_ahead=True)

    @property
    def ahead(self) -> int:
        """How many later tuples of its key a tuple waits for."""
        return max(column.offset for column in self.columns)

    @property
    def spec(self) -> TupleSpec:
        """The tuples that wait are those that a window of one tuple more would still need."""
        return TupleSpec(self.ahead + 1, 1, self.keys, self.held, ())

    @property
    def state(self) -> OperatorState:
        return OperatorState({TUPLES: TupleKeeper(self.spec)}, "tuples wait for those after them")

    def for_batch(self, facts: BatchFacts) -> LeadTuples:
        return replace(self, newest_us=facts.newest_us)

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        return deal_by_key(work, plain_names(tuples), [name for name, _ in self.keys])

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        spec, came = self.spec, together(arrived)
        ends = work.frontier_us == MAX_US and work.previous_us != MAX_US
        if came is None and not ends:
            return Result(tuple(p.carried.empty_table() for p in work.ports), 0)
        count = 0 if came is None else came.num_rows
        new = spec.state_schema.empty_table()
        if came is not None:
            new = stored_tuples(spec, came, np.zeros(count, np.int64))
        waiting = read_all(work, spec) if ends else read_groups(work, spec, new)
        waiting = waiting.filter(pa.array(live(spec, waiting)))
        work.spans.mark("instance read state")
        rows = _by_key(spec, waiting, new)
        places = np.arange(rows.tuples.num_rows)
        decided = np.flatnonzero((places + self.ahead < rows.ends) | ends)
        made = rows.tuples.take(pa.array(decided))
        for column in self.columns:
            values = column.of(rows.tuples, decided, rows.ends[decided])
            made = made.append_column(column.name, values)
        last = decided + self.ahead
        ts = np.append(ints(rows.tuples, TS), self.newest_us + self.reach_us)
        instants = ts[np.where(last < rows.ends[decided], last, len(places))]
        work.spans.mark("instance advance")
        kept = rows.new & (not ends) & (places + self.ahead >= rows.ends)
        segments = {}
        if kept.any():
            segments[TUPLES] = (write_tuples(work, spec, rows.tuples.filter(pa.array(kept))),)
        work.spans.mark("instance write")
        output = tuple(decided_rows(port, made, instants) for port in work.ports)
        work.spans.mark("instance finish")
        touched = rows_by_bucket([rows.tuples], work.mapping.buckets)
        return Result(output, count, segments, bucket_work=touched)

    def title(self) -> str:
        return f"{', '.join(column.name for column in self.columns)} over later tuples of each key"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        by = ", ".join(texts.get(name, name) for name, _ in self.keys)
        number = "one more" if self.ahead == 1 else f"{self.ahead} more"
        return [
            f"by {by or 'nothing'}",
            f"a tuple waits for {number} of its key: one task per instance, shuffle by bucket",
        ]


@dataclass(frozen=True)
class _ByKey:
    """Tuples key after key, each key in the total order, with their ranks in it.

    By place: `ends` of the key, and whether the tuple is `new`.
    """

    tuples: pa.Table
    ends: Ints
    new: Mask


def _by_key(spec: TupleSpec, waiting: pa.Table, new: pa.Table) -> _ByKey:
    """All tuples; where tuples of a key wait, the ranks of new ones go on with theirs."""
    both = pa.concat_tables([waiting, new])
    keys = [flat(both.column(name)) for name, _ in spec.keys]
    code = KeyCodes.of(keys, both.num_rows).codes
    order = np.lexsort([*(ints(both, name) for name in reversed(ORDER)), code])
    both, code = both.take(pa.array(order)), code[order]
    starts = np.flatnonzero(np.append(True, code[1:] != code[:-1])[: len(code)])
    counts = np.diff(np.append(starts, len(code)))
    first = np.repeat(starts, counts)
    ranks = ints(both, "rank")[first] + np.arange(len(code)) - first
    both = both.set_column(both.schema.get_field_index("rank"), "rank", pa.array(ranks))
    return _ByKey(both, np.repeat(starts + counts, counts), order >= waiting.num_rows)
