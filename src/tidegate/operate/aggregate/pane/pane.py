"""Folds tuples into panes, merges panes, and closes windows with them.

Rows are folded into **partials** (one row per bucket, pane and group, with the states of the
functions), partials of the same pane are merged, and a window is closed by merging its panes.
A partial table has the columns `bucket` int32, `pane` int64 (its number), the keys,
then the state columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.function import (
    FieldsSent,
    Function,
    check_columns,
    fold_rows,
    merge_rows,
    states_in,
)
from tidegate.operate.aggregate.pane.closing import Panes, closed
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import (
    Groups,
    dense,
    dense_with_numbers,
    pack,
    rank,
    rank_integers,
    stable_order,
)
from tidegate.operate.kernels.order import Ints, canonical, flat, integers
from tidegate.route.partitioner import Router
from tidegate.schema import TIME

PART = "part"
_WINDOW = (("window_start", TIME), ("window_end", TIME))


@dataclass(frozen=True)
class AggregateSpec(FieldsSent):
    """A windowed, grouped aggregate; no keys means one group."""

    window: WindowPanes
    keys: tuple[tuple[str, pa.DataType], ...]
    functions: tuple[Function, ...]

    def __post_init__(self) -> None:
        check_columns(self.keys, self.partial_schema)

    @cached_property
    def partial_schema(self) -> pa.Schema:
        """The columns of a partial table."""
        states = (column for function in self.functions for column in function.state)
        return pa.schema([("bucket", pa.int32()), ("pane", pa.int64()), *self.keys, *states])

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of closed windows."""
        results = ((function.name, function.result) for function in self.functions)
        return pa.schema([*_WINDOW, *self.keys, *results])

    @property
    def heads(self) -> list[pa.Field]:
        """The columns by which rows of windows are told apart: the ends of the window, the keys."""
        return list(self.result_schema)[: 2 + len(self.keys)]

    @property
    def spills(self) -> bool:
        """Whether panes are kept on disk alone from batch to batch: some state may be large."""
        return any(function.definition.spilled for function in self.functions)

    @property
    def keeps_values(self) -> bool:
        """Whether states of a group grow with its tuples."""
        return any(function.definition.holistic for function in self.functions)

    @property
    def grouped(self) -> tuple[str, ...]:
        """The keys that no function reads."""
        read = {name for function in self.functions for name in function.inputs}
        return tuple(name for name, _ in self.keys if name not in read)

    @cached_property
    def window_schema(self) -> pa.Schema:
        """The columns of windows that are closed in part: states, `part` by part.

        A part is what one bucket has of a window and group.
        """
        states = (column for function in self.functions for column in function.state)
        return pa.schema([*_WINDOW, *self.keys, (PART, pa.int32()), *states])


def fold(spec: AggregateSpec, rows: pa.Table, router: Router) -> pa.Table:
    """Fold rows, in any order, into partials, sorted by (bucket, pane, keys NULL first).

    `rows` has `ts` (int64 microseconds), the key and argument columns, and for functions of the
    total order also `src` and `seq`. The router places keys. Where keys are split it places
    partials, weighted by their tuples, in the order of their first tuples. Costs O(rows), and a
    sort for functions that keep lists.
    """
    if rows.num_rows == 0:
        return spec.partial_schema.empty_table()
    by_key, heads = _keys_of(spec, rows)
    panes = spec.window.ranked(integers(flat(rows.column("ts"))))
    packed = pack([panes, by_key.ranked], rows.num_rows)
    groups, numbers = dense_with_numbers(packed)
    # A group's number is pane * keys + key, so it leads back to both.
    pane, key = np.divmod(numbers, by_key.n)
    if router.splits_keys:
        # A partitioner that remembers must see its units in an order that the stream decides.
        units = np.argsort(_first_rows(groups))
        periods = spec.window.periods(panes.integers_at(pane))[units]
        bucket = np.empty(groups.n, np.int32)
        bucket[units] = router.buckets(heads, groups.n, groups.counts[units], key[units], periods)
    else:
        bucket = router.buckets(heads, by_key.n)[key]
    # The groups are sorted by (pane, key) already, and a stable sort by bucket keeps that.
    order = stable_order(bucket.astype(np.int64), router.mapping.buckets)
    bucket, pane, key = bucket[order], pane[order], key[order]
    groups = groups.reorder(order)
    number = panes.integers_at(pane)
    if router.sent is not None:
        router.sent.count(number, bucket, groups.counts)
    columns = [pa.array(bucket), pa.array(number), *_take(heads, key)]
    columns += fold_rows(spec.functions, groups, rows)
    return pa.Table.from_arrays(columns, schema=spec.partial_schema)


def placed(spec: AggregateSpec, rows: pa.Table, router: Router) -> pa.Table:
    """Give rows their `bucket` and `pane`, for `fold_placed`.

    The router places keys, or tuples where keys are split. The result has only the columns that
    keys and functions read.
    """
    by_key, heads = _keys_of(spec, rows)
    pane = spec.window.numbers(integers(flat(rows.column("ts"))))
    if router.splits_keys:
        count, periods = rows.num_rows, spec.window.periods(pane)
        bucket = router.buckets(heads, count, None, by_key.codes, periods)
    else:
        bucket = router.buckets(heads, by_key.n)[by_key.codes]
    if router.sent is not None:
        router.sent.count(pane, bucket)
    used = {name for name, _ in spec.keys} | {n for f in spec.functions for n in f.inputs}
    named = {"bucket": pa.array(bucket), "pane": pa.array(pane)}
    return pa.table(named | {n: rows.column(n) for n in rows.column_names if n in used})


def fold_placed(spec: AggregateSpec, rows: pa.Table) -> pa.Table:
    """Fold rows that have their buckets and panes, in any order, into partials as `fold` does."""
    keys = [canonical(flat(rows.column(name), type_)) for name, type_ in spec.keys]
    places = [integers(flat(rows.column(name))) for name in ("bucket", "pane")]
    ranks = [*map(rank_integers, places), *map(rank, keys)]
    groups = dense(pack(ranks, rows.num_rows))
    bucket, pane = (place[groups.rows] for place in places)
    columns = [pa.array(bucket, pa.int32()), pa.array(pane), *_take(keys, groups.rows)]
    columns += fold_rows(spec.functions, groups, rows)
    return pa.Table.from_arrays(columns, schema=spec.partial_schema)


def merge(spec: AggregateSpec, parts: Sequence[pa.Table]) -> pa.Table:
    """Merge partials of equal (bucket, pane, keys), from left to right in the given order.

    The result is sorted by (bucket, pane, keys NULL first).
    """
    parts = [part.select(spec.partial_schema.names) for part in parts if part.num_rows]
    if not parts:
        return spec.partial_schema.empty_table()
    table = pa.concat_tables(parts)
    places = [flat(table.column(i)) for i in range(2 + len(spec.keys))]
    groups = dense(pack([rank(place) for place in places], table.num_rows))
    columns = [*_take(places, groups.rows), *merge_rows(spec.functions, groups, table)]
    return pa.Table.from_arrays(columns, schema=spec.partial_schema)


def close(spec: AggregateSpec, panes: pa.Table, above_us: int, upto_us: int) -> pa.Table:
    """The results of all windows with above_us < end <= upto_us that have tuples.

    Sorted by (window_end, keys NULL first). `panes` holds every partial those windows cover, in
    any order; the panes of a window are merged in time order. MIN_US and MAX_US are infinite.
    """
    return _together(spec.result_schema, close_steps(spec, panes, above_us, upto_us, partly=False))


def close_partly(spec: AggregateSpec, panes: pa.Table, above_us: int, upto_us: int) -> pa.Table:
    """The same windows as states, to be merged with the states of other buckets.

    Sorted by (window_end, keys NULL first, part), so that the order of merging does not depend on
    which instance has which bucket.
    """
    return _together(spec.window_schema, close_steps(spec, panes, above_us, upto_us, partly=True))


def finished(spec: AggregateSpec, parts: pa.Table) -> tuple[pa.Table, Ints]:
    """The results of windows from all of their states, as `close_partly` gives them, in any order.

    The states of a window and group are merged in the order of their parts. The second value says
    how many parts each row had.
    """
    if parts.num_rows == 0:
        return spec.result_schema.empty_table(), np.empty(0, np.int64)
    heads, states, counts = merged_parts(spec, parts)
    return results_of(spec, heads, states), counts


def results_of(
    spec: AggregateSpec, heads: Sequence[pa.Array], states: Sequence[States]
) -> pa.Table:
    """The results of merged states, behind the columns `heads` (window ends and keys)."""
    pairs = zip(spec.functions, states, strict=True)
    results = [function.family.finish(columns) for function, columns in pairs]
    return pa.Table.from_arrays([*heads, *results], schema=spec.result_schema)


def named_states(spec: AggregateSpec, states: Sequence[States]) -> dict[str, States]:
    """The states of each function by its name."""
    return {f.name: held for f, held in zip(spec.functions, states, strict=True)}


def merged_parts(spec: AggregateSpec, parts: pa.Table) -> tuple[list[pa.Array], list[States], Ints]:
    """Merge the parts of windows: one row for each window and group, sorted by window end and key.

    `parts` must not be empty. Gives the columns of window ends and keys, the states of each
    function, and the number of parts of each row.
    """
    names = ["window_end", *(name for name, _ in spec.keys)]
    groups = dense(pack([rank(flat(parts.column(name))) for name in names], parts.num_rows))
    # A user's states may depend on the order of merging, so it is always that of the buckets.
    packed = pack([groups.ranked, rank(flat(parts.column(PART)))], parts.num_rows)
    if not bool(np.all(packed.codes[1:] >= packed.codes[:-1])):
        order = dense(packed).order
        parts, groups = parts.take(pa.array(order)), Groups(groups.codes[order], groups.n)
    heads = [flat(parts.column(n)) for n in spec.result_schema.names[: 2 + len(spec.keys)]]
    states = states_in(spec.functions, parts)
    if groups.n == parts.num_rows:  # no group has several
        return heads, states, groups.counts
    pairs = zip(spec.functions, states, strict=True)
    merged = [function.family.merge(groups, columns) for function, columns in pairs]
    return _take(heads, groups.rows), merged, groups.counts


def with_finished(
    spec: AggregateSpec, results: pa.Table, sizes: Ints, done: Sequence[pa.Table]
) -> tuple[pa.Table, Ints]:
    """Put the rows of merged windows and those that needed no merging into one order.

    `sizes` has the parts of each merged row. Each table of `done` is sorted already, and each of
    its rows counts as one part.
    """
    tables = [table.select(spec.result_schema.names) for table in (results, *done)]
    every = pa.concat_tables(tables)
    sizes = np.concatenate([sizes, np.ones(every.num_rows - len(sizes), np.int64)])
    if sum(table.num_rows > 0 for table in tables) < 2:
        return every, sizes
    names = ["window_end", *(name for name, _ in spec.keys)]
    ranks = [rank(flat(every.column(name))) for name in names]
    order = dense(pack(ranks, every.num_rows)).order
    return every.take(pa.array(order)), sizes[order]


def close_steps(
    spec: AggregateSpec, panes: pa.Table, above_us: int, upto_us: int, *, partly: bool
) -> Iterator[pa.Table]:
    """The rows of `close`, or with `partly` of `close_partly`, in tables of bounded size.

    All rows of a window are in one table. There may be no table.
    """
    schema = spec.window_schema if partly else spec.result_schema
    first, last = spec.window.closed(above_us, upto_us)
    if panes.num_rows == 0 or first > last:
        return
    pane = integers(flat(panes.column("pane")))
    cover = spec.window.cover
    low, high = cover.bounds(pane, first, last)
    used = np.flatnonzero(high >= low)
    # By time, and stable: partials of one pane are merged in the order of their segments.
    used = used[np.argsort(pane[used], kind="stable")]
    names = [name for name, _ in spec.keys] + ["bucket"] * partly
    keys = [canonical(key) for key in _take([flat(panes.column(n)) for n in names], used)]
    by_key = dense(pack([rank(key) for key in keys], len(used)))
    heads = [key.take(pa.array(by_key.rows)) for key in keys]
    held = Panes(
        pane=pane[used],
        by_key=by_key,
        low=low[used],
        high=high[used],
        functions=spec.functions,
        states=states_in(spec.functions, panes),
        held=panes.num_rows,
        place=used,
    )
    for part in closed(held, cover, partly):
        columns = [pa.array(ends).view(TIME) for ends in spec.window.bounds(part.window)]
        columns += [*_take(heads, part.key), *part.columns]
        yield pa.Table.from_arrays(columns, schema=schema)


def _together(schema: pa.Schema, steps: Iterator[pa.Table]) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *steps])


def _keys_of(spec: AggregateSpec, rows: pa.Table) -> tuple[Groups, list[pa.Array]]:
    """Number the keys of rows; gives the number of each row's key, and the keys by column."""
    keys = [flat(rows.column(name)) for name, _ in spec.keys]
    by_key = dense(pack([rank(key) for key in keys], rows.num_rows))
    heads = zip(_take(keys, by_key.rows), spec.keys, strict=True)
    return by_key, [canonical(flat(head, type_)) for head, (_, type_) in heads]


def _first_rows(groups: Groups) -> Ints:
    """The first row of each group; all have one."""
    first = np.empty(groups.n, np.int64)
    first[groups.codes[::-1]] = np.arange(len(groups.codes))[::-1]
    return first


def _take(columns: Sequence[pa.Array], rows: Ints) -> list[pa.Array]:
    picked = pa.array(rows)
    return [column.take(picked) for column in columns]
