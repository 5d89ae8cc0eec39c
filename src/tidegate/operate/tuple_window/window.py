"""Aggregation over windows of tuples, between routed tuples and the rows of full windows.

The tuples of a group are numbered in the total order from 0: their **ranks**. Window w of a group
is the tuples with ranks from w * slide up to before w * slide + rows. The tuple that fills a window
is its **trigger**. State is the tuples themselves, as long as a window to come has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, SEQ, SRC, TS
from tidegate.errors import QueryError, StateError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.order import Ints, Mask, canonical, flat, integers, is_ordered
from tidegate.route.bucket import hash_of
from tidegate.schema import TIME, type_name

__all__ = ["GROUP", "TupleSpec", "advance", "group_of", "live", "newest"]

GROUP = "group"
"""The column of the state with the hash of a tuple's group, by which it is found."""

_EXPANSION_LIMIT = 4_000_000
"""How many tuples one step of `advance` may copy into windows."""

_PANE_ROWS = 4
_PANES = 1024
"""How short a pane and how many of them in a window still make sharing panes worthwhile."""


@dataclass(frozen=True)
class TupleSpec:
    """An aggregate over the last `rows` tuples of each group; no keys means one group.

    `arguments` are the columns that the functions read, besides those of the total order.
    """

    rows: int
    slide: int
    keys: tuple[tuple[str, pa.DataType], ...]
    arguments: tuple[tuple[str, pa.DataType], ...]
    functions: tuple[Function, ...]

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.rows:
            got = f"ROWS {self.rows} SLIDE {self.slide}"
            raise QueryError("window", "0 < SLIDE <= ROWS is required", got)
        for name, type_ in self.keys:
            if not is_ordered(type_):
                raise QueryError(
                    f"GROUP BY {name}", "a type that can be compared is required", type_name(type_)
                )
        for names in (self.state_schema.names, self.result_schema.names):
            if len(set(names)) != len(names):
                raise QueryError("aggregate", "column names must be unique", ", ".join(names))

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of tuples that are kept."""
        places = ((name, pa.int64()) for name in (GROUP, "rank", *ORDER))
        return pa.schema([("bucket", pa.int32()), *places, *self.keys, *self.arguments])

    @property
    def result_schema(self) -> pa.Schema:
        """The columns of full windows; the last three are the trigger's place in the order."""
        results = ((function.name, function.result) for function in self.functions)
        trigger = ((f"trigger_{name}", pa.int64()) for name in ORDER)
        times = [("window_start", TIME), ("window_end", TIME)]
        return pa.schema([*times, *self.keys, *results, *trigger])

    @property
    def pane_rows(self) -> int:
        """The length of the panes that windows share; 0 where every window is folded by itself."""
        pane = math.gcd(self.rows, self.slide)
        shared = self.slide < self.rows and pane >= _PANE_ROWS and self.rows // pane <= _PANES
        return pane if shared else 0


def advance(spec: TupleSpec, held: pa.Table, news: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The windows that new tuples fill, in the order of their triggers; the new tuples as state.

    `held` has at least the live tuples of the groups in `news`; `news` has the columns of the state
    without `group` and `rank`. Both come in any order, but every new tuple is after the held ones
    of its group in the total order. Costs O(held + news), and for each tuple of a filled window
    rows / slide copies, fewer where windows share panes. Results have the same bits for any cut
    into batches.
    """
    if news.num_rows == 0:
        return spec.result_schema.empty_table(), spec.state_schema.empty_table()
    news = news.take(pa.array(np.lexsort([_ints(news, name) for name in reversed(ORDER)])))
    groups = _grouped(spec, held, news)
    old, new = np.split(groups.codes, [held.num_rows])
    held_ranks = _ints(held, "rank")
    before = _counts(old, held_ranks, groups.n)
    arrivals = Groups(new, groups.n)
    new_ranks = before[new] + _places(arrivals)
    state = _state(spec, news, new_ranks)
    done, due = _emitted(spec, before), _emitted(spec, before + arrivals.counts)
    if not bool((due > done).any()):
        return spec.result_schema.empty_table(), state
    ranks = np.concatenate([held_ranks, new_ranks])
    return _results(spec, held, state, _Runs.of(spec, groups.codes, ranks, done, due)), state


def live(spec: TupleSpec, held: pa.Table) -> Mask:
    """Which tuples a window to come may have, in groups whose live tuples are all in `held`.

    Where SLIDE equals ROWS a group may have none, and starts again at rank 0 when all its tuples
    are gone. They must go together or the oldest first: a full window that has lost its newest
    tuples would be taken for one that fills.
    """
    groups, ranks = _grouped(spec, held), _ints(held, "rank")
    needed = _emitted(spec, _counts(groups.codes, ranks, groups.n)) * spec.slide
    mask: Mask = ranks >= needed[groups.codes]
    return mask


def newest(spec: TupleSpec, held: pa.Table) -> Mask:
    """Which tuples are the newest of their group in `held`."""
    groups, ranks = _grouped(spec, held), _ints(held, "rank")
    mask: Mask = ranks + 1 == _counts(groups.codes, ranks, groups.n)[groups.codes]
    return mask


def group_of(spec: TupleSpec, tuples: pa.Table) -> Ints:
    """62 bits for every tuple, equal where the groups are: a tuple is found by them, not known."""
    if not spec.keys:
        return np.zeros(tuples.num_rows, np.int64)
    hashes = hash_of([flat(tuples.column(name), type_) for name, type_ in spec.keys])
    return (hashes >> np.uint64(2)).astype(np.int64)


@dataclass(frozen=True)
class _Runs:
    """The tuples of the windows to emit, group after group, each group in the order of its ranks.

    `rows` are their places among the held tuples followed by the new ones. Window i is the `rows`
    of the spec many from `starts[i]` on. Windows come in the order of their triggers.
    """

    rows: Ints
    starts: Ints

    @staticmethod
    def of(spec: TupleSpec, codes: Ints, ranks: Ints, done: Ints, due: Ints) -> _Runs:
        """Runs for the windows from `done` up to before `due` of each group."""
        windows = due - done
        low = done * spec.slide
        lengths = np.where(windows > 0, (windows - 1) * spec.slide + spec.rows, 0)
        begins = np.cumsum(lengths) - lengths
        place = ranks - low[codes]
        used = np.flatnonzero((place >= 0) & (place < lengths[codes]))
        rows = np.full(int(lengths.sum()), -1, np.int64)
        rows[begins[codes[used]] + place[used]] = used
        if len(used) != len(rows) or bool((rows < 0).any()):
            raise StateError(
                "tuple window",
                f"the {len(rows)} tuples of the windows must be held, each once",
                f"{len(used)}",
                "Restart: the run continues after its last committed batch.",
            )
        nth = np.arange(int(windows.sum())) - np.repeat(np.cumsum(windows) - windows, windows)
        starts = np.repeat(begins, windows) + nth * spec.slide
        return _Runs(rows, starts[np.argsort(rows[starts + spec.rows - 1])])


def _ints(table: pa.Table, name: str) -> Ints:
    return integers(flat(table.column(name)))


def _grouped(spec: TupleSpec, *tables: pa.Table) -> Groups:
    """The groups of the rows of the tables, one after the other."""
    ranks = [
        rank(pa.concat_arrays([flat(table.column(name), type_) for table in tables]))
        for name, type_ in spec.keys
    ]
    return dense(pack(ranks, sum(table.num_rows for table in tables)))


def _counts(codes: Ints, ranks: Ints, n: int) -> Ints:
    """How many tuples each group has had: one more than its highest rank."""
    counts = np.zeros(n, np.int64)
    np.maximum.at(counts, codes, ranks + 1)
    return counts


def _emitted(spec: TupleSpec, counts: Ints) -> Ints:
    """How many windows groups of so many tuples have filled."""
    return np.maximum((counts - spec.rows) // spec.slide + 1, 0)


def _places(groups: Groups) -> Ints:
    """The place of every row among the rows of its group."""
    places = np.empty(len(groups.codes), np.int64)
    places[groups.order] = np.arange(len(places)) - np.repeat(groups.starts, groups.counts)
    return places


def _state(spec: TupleSpec, news: pa.Table, ranks: Ints) -> pa.Table:
    columns = [flat(news.column("bucket"), pa.int32())]
    columns += [pa.array(group_of(spec, news)), pa.array(ranks)]
    columns += [pa.array(_ints(news, name)) for name in ORDER]
    columns += [canonical(flat(news.column(name), type_)) for name, type_ in spec.keys]
    columns += [flat(news.column(name), type_) for name, type_ in spec.arguments]
    return pa.Table.from_arrays(columns, schema=spec.state_schema)


def _results(spec: TupleSpec, held: pa.Table, state: pa.Table, runs: _Runs) -> pa.Table:
    names = [TS, *(name for name, _ in spec.arguments)]
    types = [state.schema.field(name) for name in names]
    both = pa.concat_tables([held.select(names).cast(pa.schema(types)), state.select(names)])
    rows = {name: flat(both.column(name)).take(pa.array(runs.rows)) for name in names}
    rows |= _order_columns(len(runs.rows))
    oldest, newest = runs.starts, runs.starts + spec.rows - 1
    triggers = state.take(pa.array(runs.rows[newest] - held.num_rows))
    results = _folded(spec, rows, runs.starts)
    for function in spec.functions:
        if function.definition.edge is not None:
            at = pa.array(newest if function.definition.edge else oldest)
            results[function.name] = rows[function.arguments[0]].take(at)
    columns = [rows[TS].take(pa.array(oldest)).view(TIME), flat(triggers.column(TS)).view(TIME)]
    columns += [triggers.column(name) for name, _ in spec.keys]
    columns += [results[function.name] for function in spec.functions]
    columns += [triggers.column(name) for name in ORDER]
    return pa.Table.from_arrays(columns, schema=spec.result_schema)


def _order_columns(rows: int) -> dict[str, pa.Array]:
    """What stands for source and position: within equal times, tuples of a run are in order."""
    return {SRC: pa.array(np.zeros(rows, np.int64)), SEQ: pa.array(np.arange(rows))}


def _folded(
    spec: TupleSpec, rows: Mapping[str, pa.Array], starts: Ints
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The results of functions of more than one tuple, a bounded number of windows at a time."""
    functions = [f for f in spec.functions if f.definition.edge is None]
    states = (_over_panes if spec.pane_rows else _over_tuples)(spec, functions, rows)
    step = max(1, _EXPANSION_LIMIT // spec.rows)
    parts: list[list[pa.Array]] = [[] for _ in functions]
    for first in range(0, len(starts), step):
        made = states(starts[first : first + step])
        for function, part, state in zip(functions, parts, made, strict=True):
            part.append(function.family.finish(state))
    return {f.name: pa.chunked_array(p, f.result) for f, p in zip(functions, parts, strict=True)}


def _over_tuples(
    spec: TupleSpec, functions: Sequence[Function], rows: Mapping[str, pa.Array]
) -> Callable[[Ints], list[States]]:
    """States of windows, each folded from its own tuples."""
    names = sorted({name for function in functions for name in function.inputs})

    def states(starts: Ints) -> list[States]:
        index = _expanded(starts, spec.rows)
        taken = {name: rows[name].take(index) for name in names}
        return [_fold(function, taken, len(starts), spec.rows) for function in functions]

    return states


def _over_panes(
    spec: TupleSpec, functions: Sequence[Function], rows: Mapping[str, pa.Array]
) -> Callable[[Ints], list[States]]:
    """States of windows, merged from panes: runs and windows are whole panes, from the first on."""
    pane, panes = spec.pane_rows, spec.rows // spec.pane_rows
    folded = [_fold(function, rows, len(rows[TS]) // pane, pane) for function in functions]

    def states(starts: Ints) -> list[States]:
        index = _expanded(starts // pane, panes)
        groups = _even(len(starts), panes)
        return [
            function.family.merge(groups, [column.take(index) for column in columns])
            for function, columns in zip(functions, folded, strict=True)
        ]

    return states


def _fold(function: Function, rows: Mapping[str, pa.Array], n: int, length: int) -> States:
    """States of n groups of so many rows each, one group after the other."""
    return function.family.fold(_even(n, length), [rows[name] for name in function.inputs])


def _expanded(starts: Ints, length: int) -> pa.Array:
    """The places from each start on, so many of each."""
    return pa.array((starts[:, None] + np.arange(length)).ravel())


def _even(n: int, length: int) -> Groups:
    """Groups of so many rows each, one after the other."""
    return Groups(np.repeat(np.arange(n), length), n)
