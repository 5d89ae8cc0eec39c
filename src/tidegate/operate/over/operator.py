"""The operator of OVER: adds columns to a tuple from the earlier tuples of its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import TS, ints
from tidegate.operate.aggregate.function import FieldsSent
from tidegate.operate.keeper import Keeper
from tidegate.operate.keyed_operator import KeyedOperator, KeyedStep
from tidegate.operate.keyed_state import KeyedKeeper, needed_from, read_keys, write_keys
from tidegate.operate.operator import InstanceWork, OperatorState
from tidegate.operate.over.column import OverColumn
from tidegate.operate.over.run import KeyRuns
from tidegate.operate.tuple_rows import in_total_order, tuple_rows
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.state import TUPLES, TupleKeeper, read_groups, write_tuples
from tidegate.operate.tuple_window.window import stored_tuples
from tidegate.state.segment.segment import Segment

RANGED = "ranged"
"""The part of the state with the tuples that frames of time look back at."""

Typed = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class OverTuples(FieldsSent, KeyedOperator):
    """Adds columns to tuples; `keys` and `arguments` are columns of the tuples.

    The state has two parts for each key. One has the newest tuples, as many as frames of rows look
    back at, and with the newest tuple the states of running functions. The other has the tuples of
    the time that frames of time look back at.
    """

    kind: ClassVar[str] = "over"

    keys: Typed
    arguments: Typed
    columns: tuple[OverColumn, ...]

    task = "looks back at tuples of the key"

    @cached_property
    def ranged(self) -> tuple[OverColumn, ...]:
        return tuple(c for c in self.columns if c.reach_us)

    @cached_property
    def counted(self) -> tuple[OverColumn, ...]:
        return tuple(c for c in self.columns if not c.reach_us)

    @cached_property
    def spec(self) -> TupleSpec:
        """The part that keeps tuples by their number; the newest is always kept."""
        read = {name for c in self.counted if c.rows for name in c.arguments}
        held = tuple((name, type_) for name, type_ in self.arguments if name in read)
        states = tuple(part for c in self.counted for part in c.state)
        rows = 1 + max([1, *(c.rows for c in self.counted)])
        return TupleSpec(rows, 1, self.keys, held + states, ())

    @cached_property
    def keeper(self) -> KeyedKeeper:
        read = {name for c in self.ranged for name in c.arguments}
        held = (*self.key_names, *(name for name, _ in self.arguments if name in read))
        return KeyedKeeper(max([0, *(c.reach_us for c in self.ranged)]), held)

    @property
    def key_names(self) -> Sequence[str]:
        return [name for name, _ in self.keys]

    @property
    def state(self) -> OperatorState:
        kept: dict[str, Keeper] = {TUPLES: TupleKeeper(self.spec)} if self.counted else {}
        kept |= {RANGED: self.keeper} if self.ranged else {}
        return OperatorState(kept, "it looks back at the tuples of each key")

    def advance(self, work: InstanceWork, tuples: pa.Table | None) -> KeyedStep | None:
        if tuples is None:
            return None
        tuples = in_total_order(tuples)
        segments: dict[str, tuple[Segment, ...]] = {}
        made: dict[str, pa.Array] = {}
        if self.counted:
            segments[TUPLES] = self._count(work, tuples, made)
        if self.ranged:
            segments[RANGED] = self._look_back(work, tuples, made)
        for name, column in made.items():
            tuples = tuples.append_column(name, column)
        return KeyedStep(partial(tuple_rows, tuples=tuples), tuples, segments)

    def _count(
        self, work: InstanceWork, tuples: pa.Table, made: dict[str, pa.Array]
    ) -> tuple[Segment, ...]:
        """Make the columns that look back by number, and write what later tuples need."""
        spec = self.spec
        held = read_groups(work, spec, tuples)
        work.spans.mark("instance read state")
        names = [name for name, _ in (*self.arguments, *spec.arguments)]
        runs = KeyRuns.of(held, tuples, self.key_names, ["rank", *names])
        states: dict[str, pa.Array] = {}
        for column in self.counted:
            values, state = column.of(runs)
            made[column.name] = runs.in_order(values)
            states |= state
        work.spans.mark("instance advance")
        # A new tuple's rank continues from the newest stored tuple of its key, or from 0.
        before = np.where(runs.last_stored, runs.column("rank").fill_null(-1).to_numpy() + 1, 0)
        first = runs.fresh[runs.at]
        known = first > runs.starts[runs.at]
        ranks = np.where(known, before[np.maximum(first - 1, 0)], 0) + runs.at - first
        newest = np.searchsorted(runs.newest, runs.at)
        last = pa.array(newest, mask=runs.at != runs.newest[newest])
        for name, state in states.items():
            tuples = tuples.append_column(name, runs.in_order(state.take(last)))
        numbers = runs.in_order(pa.array(ranks)).to_numpy()
        return (write_tuples(work, spec, stored_tuples(spec, tuples, numbers)),)

    def _look_back(
        self, work: InstanceWork, tuples: pa.Table, made: dict[str, pa.Array]
    ) -> tuple[Segment, ...]:
        """Make the columns that look back by time, and write what later tuples need."""
        keeper = self.keeper
        held = read_keys(work, RANGED, keeper.columns, tuples)
        work.spans.mark("instance read state")
        runs = KeyRuns.of(held, tuples, self.key_names, keeper.held)
        for column in self.ranged:
            made[column.name] = runs.in_order(column.of(runs)[0])
        work.spans.mark("instance advance")
        live = ints(tuples, TS) >= needed_from(work.frontier_us, keeper.reach_us)
        return write_keys(work, keeper, tuples.filter(pa.array(live)), RANGED)

    def title(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"{names} over the tuples of each key"
