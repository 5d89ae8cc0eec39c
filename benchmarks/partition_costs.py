"""What the kernels of an aggregate cost, by running them on parts of a window.

Parts are those of some keys, as with `hash`, some tuples, as with `shuffle`, and the latter with a
tenth of the keys, each of several sizes: so the cost of a unit and of a group are told apart.
Seconds are of the CPU, the least of some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from huber import HuberLocation
from least_squares import explained
from partition_path import BATCHES, Costs, Line
from partition_streams import Window

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.choice import costs_of
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import (
    PART,
    AggregateSpec,
    close,
    close_partly,
    finished,
    fold,
    fold_placed,
    merge,
    placed,
)
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.route.hash import BY_HASH
from tidegate.route.mapping import even
from tidegate.route.partitioner import Router
from tidegate.route.selection import Costs as Weights

T = TypeVar("T")

SHARES, COSTLY_SHARES = (1, 4, 16, 64), (8, 32, 128)
FEWER = 10
"""How many keys are made one, for parts with fewer keys."""
COPIES = (1, 2, 4)
"""In how many parts the groups come that are merged."""
ROUNDS = 3
_RANGE_US = 1_000_000


@dataclass(frozen=True)
class Work:
    """What is asked of the tuples, and who folds them."""

    costly: bool
    folds_in_map: bool

    def spec(self, window: Window) -> AggregateSpec:
        keys = tuple((f"k{i}", key.type) for i, key in enumerate(window.keys))
        number = pa.float64()
        if self.costly:
            low, high = (float(v) for v in np.quantile(window.values.to_numpy(), (0.0, 0.999)))
            huber = HuberLocation(low, max(high, low + 1), max((high - low) / 10, 0.1))
            functions = [Function("h", "user", ("x",), (number,), (huber,))]
        else:
            functions = [Function("n", "count"), Function("m", "mean", ("x",), (number,))]
        return AggregateSpec(PaneWindow(_RANGE_US, _RANGE_US), keys, tuple(functions))

    def weights(self, window: Window) -> Weights:
        """What `auto` takes for the costs of this work."""
        return costs_of(self.spec(window))


WORKS = {
    "partials": Work(costly=False, folds_in_map=True),
    "tuples": Work(costly=False, folds_in_map=False),
    "costly": Work(costly=True, folds_in_map=False),
}
"""COUNT and AVG folded in map tasks, which is the default; the same with tuples routed, as
`--partial instance` has it; and an aggregate of one's own, which routes tuples by default."""


def measured(work: Work, window: Window) -> Costs:
    """Measure all steps on the tuples of a window."""
    spec, found = work.spec(window), _Measured([], [], [])
    for part in _parts(window, COSTLY_SHARES if work.costly else SHARES):
        found.add(spec, work, part.table())
    batch = window.part(np.arange(window.rows // BATCHES)).table()
    dealt = fold if work.folds_in_map else placed
    map_s = _least(lambda: _shipped(dealt(spec, batch, _ONE)))[0]
    return Costs(
        map_tuple_s=map_s / batch.num_rows,
        whole=_line(found.whole),
        partly=_line(found.partly),
        merge=_line(found.merge),
    )


_ONE = Router(BY_HASH, even(64, 1))

Row = tuple[int, int, float]
"""Units, groups, and the seconds that they took."""


@dataclass(frozen=True)
class _Measured:
    whole: list[Row]
    partly: list[Row]
    merge: list[Row]

    def add(self, spec: AggregateSpec, work: Work, rows: pa.Table) -> None:
        """Run an instance that has these tuples, and those that merge what it gives."""
        if work.folds_in_map:
            size = -(-rows.num_rows // BATCHES)
            starts = range(0, rows.num_rows, size)
            given = [fold(spec, rows.slice(start, size), _ONE) for start in starts]
            units = sum(part.num_rows for part in given)
            news_s, panes = _least(lambda: merge(spec, given))
        else:
            there = placed(spec, rows, _ONE)
            units = there.num_rows
            news_s, panes = _least(lambda: fold_placed(spec, there))
        whole_s, results = _least(lambda: close(spec, panes, MIN_US, MAX_US))
        partly_s, parts = _least(lambda: close_partly(spec, panes, MIN_US, MAX_US))
        self.whole.append((units, results.num_rows, news_s + whole_s))
        self.partly.append((units, results.num_rows, news_s + partly_s))
        for copies in COPIES:
            several = pa.concat_tables([_as_part(parts, number) for number in range(copies)])
            merge_s, _ = _least(lambda several=several: finished(spec, several))
            self.merge.append((several.num_rows, results.num_rows, merge_s))


def _as_part(parts: pa.Table, number: int) -> pa.Table:
    place = parts.schema.get_field_index(PART)
    numbers = pa.array(np.full(parts.num_rows, number, np.int32))
    return parts.set_column(place, parts.schema.field(PART), numbers)


def _parts(window: Window, shares: Sequence[int]) -> Iterator[Window]:
    """Some keys, some tuples, and some tuples with other keys, of each size."""
    chance = np.random.default_rng(3)
    for share in shares:
        some = np.sort(chance.permutation(window.rows)[: window.rows // share])
        yield window.part(some)
        if window.groups > FEWER * share:
            mine = chance.permutation(window.groups) % share == 0
            yield window.part(np.flatnonzero(mine[window.codes]))
        if window.groups > FEWER:
            yield window.renamed(window.codes // FEWER).part(some)


def _line(rows: list[Row]) -> Line:
    """What was given in nearly the same number each time is in the cost of the step."""
    *counted, seconds = np.array(rows, np.float64).T
    told = [count if count.max() > 2 * count.min() else np.zeros(len(rows)) for count in counted]
    return Line(*explained(np.column_stack([np.ones(len(rows)), *told]), seconds))


def _least(step: Callable[[], T]) -> tuple[float, T]:
    """The least seconds of some rounds, and what they give."""
    found: list[float] = []
    result: Any = None
    for _ in range(ROUNDS):
        began = time.process_time()
        result = step()
        found.append(time.process_time() - began)
    return max(min(found), 1e-6), result


def _shipped(table: pa.Table) -> int:
    """Write what map tasks hand on, as they do."""
    to = pa.BufferOutputStream()
    with pa.ipc.new_stream(to, table.schema) as writer:
        writer.write_table(table)
    return to.getvalue().size
