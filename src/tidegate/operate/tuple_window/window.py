"""Adds tuples to their groups, and computes the windows of tuples that become full.

The **rank** of a tuple is its number in its group, in the total order, from 0 on. Window w of a
group has the ranks from w * slide up to before w * slide + rows. The tuple that fills a window is
its **trigger**. The state is the tuples themselves, as long as a later window needs them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, SEQ, SRC, TS
from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.order import Ints, Mask, canonical, flat, integers
from tidegate.operate.tuple_window.fill import Runs, folded
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.route.bucket import hash_of
from tidegate.schema import TIME


def advance(spec: TupleSpec, held: pa.Table, news: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The windows that new tuples fill, in the order of their triggers; the new tuples as state.

    `held` has at least the live tuples of the groups in `news`. `news` has the columns of the state
    without `group` and `rank`. Both come in any order, but a new tuple must be after the held ones
    of its group in the total order. Costs O(held + news), and for each tuple of a full window
    rows / slide copies, or a few merges where that is much. Results have the same bits for any cut
    into batches.
    """
    if news.num_rows == 0:
        return spec.result_schema.empty_table(), spec.state_schema.empty_table()
    news = in_order(news)
    groups = _grouped(spec, held, news)
    old, new = np.split(groups.codes, [held.num_rows])
    held_ranks = _ints(held, "rank")
    before = _counts(old, held_ranks, groups.n)
    arrivals = Groups(new, groups.n)
    new_ranks = before[new] + _places(arrivals)
    state = stored_tuples(spec, news, new_ranks)
    done, due = spec.emitted(before), spec.emitted(before + arrivals.counts)
    if not bool((due > done).any()):
        return spec.result_schema.empty_table(), state
    ranks = np.concatenate([held_ranks, new_ranks])
    return _results(spec, held, state, Runs.of(spec, groups.codes, ranks, done, due)), state


def filled(spec: TupleSpec, held: pa.Table, state: pa.Table, first: int, stop: int) -> pa.Table:
    """The windows `first` to `stop` - 1 of a stream without groups, which tuples in `state` fill.

    `held` and `state` must have the tuples of these windows, each once; they may have others.
    """
    if first >= stop:
        return spec.result_schema.empty_table()
    ranks = np.concatenate([_ints(held, "rank"), _ints(state, "rank")])
    windows = np.array([first]), np.array([stop])
    return _results(spec, held, state, Runs.of(spec, np.zeros_like(ranks), ranks, *windows))


def in_order(tuples: pa.Table) -> pa.Table:
    """Sort tuples by the total order."""
    return tuples.take(pa.array(np.lexsort([_ints(tuples, name) for name in reversed(ORDER)])))


def live(spec: TupleSpec, held: pa.Table) -> Mask:
    """Marks the tuples that a later window needs; `held` must have all live tuples of its groups.

    Where SLIDE equals ROWS a group may have none left, and starts again at rank 0. Its tuples must
    be dropped together, or the oldest first: a full window that has lost its newest tuples would be
    taken for one that is still filling.
    """
    groups, ranks = _grouped(spec, held), _ints(held, "rank")
    needed = spec.needed(_counts(groups.codes, ranks, groups.n), held, groups)
    mask: Mask = ranks >= needed[groups.codes]
    return mask


def newest(spec: TupleSpec, held: pa.Table) -> Mask:
    """Marks the newest tuple of each group in `held`."""
    groups, ranks = _grouped(spec, held), _ints(held, "rank")
    mask: Mask = ranks + 1 == _counts(groups.codes, ranks, groups.n)[groups.codes]
    return mask


def group_of(spec: TupleSpec, tuples: pa.Table) -> Ints:
    """A 62-bit hash of each tuple's group; different groups may have the same hash."""
    if not spec.keys:
        return np.zeros(tuples.num_rows, np.int64)
    hashes = hash_of([flat(tuples.column(name), type_) for name, type_ in spec.keys])
    return (hashes >> np.uint64(2)).astype(np.int64)


def _ints(table: pa.Table, name: str) -> Ints:
    return integers(flat(table.column(name)))


def _grouped(spec: TupleSpec, *tables: pa.Table) -> Groups:
    """Number the groups in the rows of tables, taken one after the other."""
    ranks = [
        rank(pa.concat_arrays([flat(table.column(name), type_) for table in tables]))
        for name, type_ in spec.keys
    ]
    return dense(pack(ranks, sum(table.num_rows for table in tables)))


def _counts(codes: Ints, ranks: Ints, n: int) -> Ints:
    """How many tuples each group has had so far: one more than its highest rank."""
    counts = np.zeros(n, np.int64)
    np.maximum.at(counts, codes, ranks + 1)
    return counts


def _places(groups: Groups) -> Ints:
    """The place of each row among the rows of its group."""
    places = np.empty(len(groups.codes), np.int64)
    places[groups.order] = np.arange(len(places)) - np.repeat(groups.starts, groups.counts)
    return places


def stored_tuples(spec: TupleSpec, news: pa.Table, ranks: Ints) -> pa.Table:
    """New tuples with these ranks in the shape of the state."""
    columns = [flat(news.column("bucket"), pa.int32())]
    columns += [pa.array(group_of(spec, news)), pa.array(ranks)]
    columns += [pa.array(_ints(news, name)) for name in ORDER]
    columns += [canonical(flat(news.column(name), type_)) for name, type_ in spec.keys]
    columns += [flat(news.column(name), type_) for name, type_ in spec.arguments]
    return pa.Table.from_arrays(columns, schema=spec.state_schema)


def _results(spec: TupleSpec, held: pa.Table, state: pa.Table, runs: Runs) -> pa.Table:
    names = [TS, *(name for name, _ in spec.arguments)]
    types = [state.schema.field(name) for name in names]
    both = pa.concat_tables([held.select(names).cast(pa.schema(types)), state.select(names)])
    rows = {name: flat(both.column(name)).take(pa.array(runs.rows)) for name in names}
    rows |= _order_columns(len(runs.rows))
    oldest, newest = runs.starts, runs.starts + spec.rows - 1
    triggers = state.take(pa.array(runs.rows[newest] - held.num_rows))
    results = folded(spec, rows, runs)
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
    """Columns in the place of src and seq: runs are in the total order, so row numbers will do."""
    return {SRC: pa.array(np.zeros(rows, np.int64)), SEQ: pa.array(np.arange(rows))}
