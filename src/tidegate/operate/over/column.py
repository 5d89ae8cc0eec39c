"""The columns that OVER adds to tuples: aggregates over frames, and values of earlier tuples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.function import Function
from tidegate.operate.kernels.family import States, slides
from tidegate.operate.kernels.group import Groups, run_starts
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.window.span import merge_spans
from tidegate.operate.over.frame import Frame
from tidegate.operate.over.run import KeyRuns


class OverColumn(Protocol):
    """A column that OVER adds, computed from columns of the tuples; picklable."""

    @property
    def name(self) -> str: ...

    @property
    def result(self) -> pa.DataType: ...

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns of the tuples that it reads."""

    @property
    def rows(self) -> int:
        """It looks at most at so many tuples of the key before a new one."""

    @property
    def reach_us(self) -> int:
        """How far back in time it looks; 0 where `rows` is the limit."""

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns that it keeps of all tuples of a key, stored with the newest tuple."""

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        """Its value for each new tuple, in the order of places, and its state for each key."""


@dataclass(frozen=True)
class FrameColumn:
    """An aggregate over a frame."""

    function: Function
    frame: Frame

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def result(self) -> pa.DataType:
        return self.function.result

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.function.arguments

    @property
    def rows(self) -> int:
        return self.frame.rows

    @property
    def reach_us(self) -> int:
        return self.frame.reach_us

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return self.function.state if self.frame.running else ()

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        family, (first, last) = self.function.family, self.frame.bounds(runs)
        count = len(runs.starts)
        columns = [runs.column(name) for name in self.function.inputs]
        states = family.fold(Groups(np.arange(count), count), columns)
        if not self.frame.running:
            return self._results(states, runs.starts, first, last), {}
        return self._running(runs, states, first, last)

    def _running(
        self, runs: KeyRuns, states: States, first: Ints, last: Ints
    ) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        """Evaluate a frame over all tuples of the key.

        The state that is stored with the newest stored tuple replaces all stored tuples.
        """
        stored, count = runs.last_stored, len(runs.starts)
        used = stored | (np.arange(count) >= runs.fresh)
        place = np.cumsum(used) - 1
        row = pa.array(np.where(stored, count + np.arange(count), np.arange(count))[used])
        kept = [
            pa.concat_arrays([own, runs.column(name)]).take(row)
            for own, (name, _) in zip(states, self.function.state, strict=True)
        ]
        begins = run_starts(runs.starts)
        run = (np.cumsum(begins) - 1)[used]
        starts = np.flatnonzero(run_starts(run))[run]
        values = self._results(kept, starts, place[first], place[last - 1] + 1)
        whole = self.function.family.merge(Groups(run, int(begins.sum())), kept)
        named = zip(self.function.state, whole, strict=True)
        return values, {name: column for (name, _), column in named}

    def _results(self, states: States, starts: Ints, first: Ints, last: Ints) -> pa.Array:
        family = self.function.family
        if slides(family):
            return family.slide(states, first, last)
        return family.finish(merge_spans(family, states, starts, first, last))


@dataclass(frozen=True)
class LagColumn:
    """The value of the tuple `offset` places before in its key, or the column `default`."""

    name: str
    result: pa.DataType
    value: str
    offset: int
    default: str | None = None
    reach_us = 0
    state: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.value,) if self.default is None else (self.value, self.default)

    @property
    def rows(self) -> int:
        return self.offset

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        at = runs.at - self.offset
        there = at >= runs.starts[runs.at]
        values = runs.column(self.value)
        if self.default is None:
            return values.take(pa.array(at, mask=~there)), {}
        both = pa.concat_arrays([values, runs.column(self.default)])
        return both.take(pa.array(np.where(there, at, len(values) + runs.at))), {}


@dataclass(frozen=True)
class RankColumn:
    """RANK: one more than the tuples of the key at earlier times; DENSE_RANK counts the times.

    It keeps how many there have been. All tuples of one time come in one batch, so peers never
    stand in two batches.
    """

    name: str
    dense: bool
    result = pa.int64()
    arguments: tuple[str, ...] = ()
    rows = 0
    reach_us = 0

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return ((f"{self.name}_before", pa.int64()),)

    def of(self, runs: KeyRuns) -> tuple[pa.Array, Mapping[str, pa.Array]]:
        ((name, _),) = self.state
        stored, places = runs.column(name).fill_null(0).to_numpy(), np.arange(len(runs.starts))
        known = runs.fresh > runs.starts
        before = np.where(known, stored[np.maximum(runs.fresh - 1, 0)], 0)
        opens = (places == runs.fresh) | (runs.ts != np.append(runs.ts[:1], runs.ts[:-1]))
        if self.dense:
            instants = np.cumsum(opens)
            ranks = before + instants - instants[runs.fresh] + 1
            total = ranks
        else:
            ranks = before + np.maximum.accumulate(np.where(opens, places, 0)) - runs.fresh + 1
            total = before + runs.ends - runs.fresh
        return pa.array(ranks[runs.at]), {name: pa.array(total[runs.newest])}
