"""Routes tuples to the buckets of a user's own operator, and calls its objects.

Map tasks call `assign`, which gives each tuple its buckets. Instances call `advance`, which calls
the objects of their buckets for tuples and timers up to the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import SEQ, SRC, TS
from tidegate.errors import TaskError
from tidegate.operate.bucket_work import Laps
from tidegate.operate.kernels.group import rank
from tidegate.operate.kernels.order import flat
from tidegate.operate.process.calls import ObjectCalls
from tidegate.operate.process.definition import (
    BUCKET,
    KEY_POSITION,
    TRIGGER,
    KeyFunction,
    ProcessSpec,
    is_list,
)
from tidegate.operate.process.entry import StateRow, table_of
from tidegate.operate.process.feed import BucketRows, Feed
from tidegate.operate.process.hot import HotState
from tidegate.operate.process.output_rows import Mistake, OutputRows
from tidegate.route.partitioner import EVERY_BUCKET, Router


def assign(spec: ProcessSpec, tuples: pa.Table, router: Router) -> pa.Table:
    """Give tuples their buckets: the rows of `spec.routed`.

    `tuples` has ts, src and seq, then the input columns by position. A tuple with several keys has
    a row for each of them.
    """
    columns = [tuples.column(i) for i in range(3, tuples.num_columns)]
    extra: list[pa.Array] = []
    if spec.keys is None:
        numbers = router.buckets((), tuples.num_rows)
    elif spec.key is None:
        assert not callable(spec.keys)
        names = [name for name, _ in spec.columns]
        values = [flat(columns[names.index(key)]) for key in spec.keys]
        numbers = router.buckets(values, tuples.num_rows)
    else:
        parents, keys, places = _keys_of(spec, tuples, columns)
        tuples = tuples.take(parents)
        columns = [tuples.column(i) for i in range(3, tuples.num_columns)]
        numbers = router.buckets([keys], len(keys))
        extra = [keys, places]
    order = [tuples.column(i) for i in range(3)]
    return pa.table([pa.array(numbers), *order, *columns, *extra], schema=spec.routed)


def _keys_of(
    spec: ProcessSpec, tuples: pa.Table, columns: Sequence[pa.ChunkedArray]
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """For every distinct key of every tuple: the tuple, the key, its place among the tuple's keys.

    Sorted by tuple and place; a key that a list has twice counts where it comes first.
    """
    if callable(spec.keys):
        found = _called(spec, spec.keys, tuples.column(0), columns)
    else:
        assert spec.keys is not None
        names = [name for name, _ in spec.columns]
        found = flat(columns[names.index(spec.keys[0])])
    if not is_list(found.type):
        rows = np.arange(len(found))
        return pa.array(rows), flat(found, spec.key), pa.array(np.zeros(len(rows), np.int32))
    parents = pc.list_parent_indices(found).cast(pa.int64()).to_numpy(zero_copy_only=False)
    keys = flat(pc.list_flatten(found), spec.key)
    ranks = rank(keys)
    # A key that a tuple's list has twice counts once, where it comes first.
    _, first = np.unique(parents * ranks.size + ranks.codes, return_index=True)
    first = np.sort(first)
    begins = np.searchsorted(parents[first], parents[first], side="left")
    places = (np.arange(len(first)) - begins).astype(np.int32)
    return pa.array(parents[first]), keys.take(pa.array(first)), pa.array(places)


def _called(
    spec: ProcessSpec, keys: KeyFunction, ts: pa.ChunkedArray, columns: Sequence[pa.ChunkedArray]
) -> pa.Array:
    where = f"process {spec.name}"
    try:
        found = keys(spec.seen(ts, columns))
        found = flat(found) if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found)
    except Exception as error:
        raise TaskError(
            where,
            "the function of the keys must not raise",
            f"{type(error).__name__}: {error}",
            "Fix the function; the run continues from the last committed batch.",
        ) from error
    type_ = found.type.value_type if is_list(found.type) else found.type
    if len(found) != len(ts) or type_ != spec.key:
        raise TaskError(
            where,
            f"the function of the keys must return {spec.key} keys for {len(ts)} tuples",
            f"{found.type} for {len(found)}",
            "Return one key, or one list of keys, per tuple, always of the same type.",
        )
    return found


def advance(
    spec: ProcessSpec,
    buckets: Sequence[int],
    state: HotState,
    news: pa.Table | None,
    previous_us: int,
    frontier_us: int,
    where: str,
    *,
    total: int,
    laps: Laps | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Call the objects of these buckets for all tuples and timers in [previous, frontier).

    `news` are rows of `spec.routed` in any order, for these buckets or for EVERY_BUCKET. `state` is
    the state of these buckets. `total` is the query's number of buckets. `laps` measures the time
    of each bucket. Gives the rows of `spec.result` in their order, and the changed rows of the
    state. Objects live for this call only. An object that is called costs reading its head, and the
    entries that it uses.
    """
    shares = _shares(spec, buckets, news, previous_us, frontier_us)
    due = set(state.due(frontier_us))
    output = OutputRows(spec)
    changes: list[tuple[int, list[StateRow]]] = []
    if laps is not None:
        laps.start()
    for bucket in sorted(due.union(shares)):
        calls = ObjectCalls(spec, bucket, total, output, where)
        rows = calls.chosen(shares[bucket]) if bucket in shares else None
        if rows is not None or bucket in due:
            calls.run(state.bucket(bucket), rows, frontier_us)
            changed = calls.changes()
            state.changed(bucket, changed)
            changes.append((bucket, changed))
        if laps is not None:
            laps.lap(bucket)
    try:
        made = output.table()
    except Mistake as mistake:
        raise ObjectCalls(spec, 0, total, output, where).told(mistake) from mistake
    keys = [made.column(name).to_numpy() for name in reversed(TRIGGER)]
    return made.take(pa.array(np.lexsort(keys))), table_of(changes)


def _shares(
    spec: ProcessSpec,
    buckets: Sequence[int],
    news: pa.Table | None,
    previous_us: int,
    frontier_us: int,
) -> dict[int, BucketRows]:
    """The rows of each bucket that has some, in the total order, then in that of a tuple's keys."""
    if news is None or not news.num_rows:
        return {}
    number, ts, src, seq = (news.column(c).to_numpy() for c in (BUCKET, TS, SRC, SEQ))
    if int(ts.min()) < previous_us or int(ts.max()) >= frontier_us:
        raise ValueError(f"tuples outside [{previous_us}, {frontier_us})")
    keys = [seq, src, ts, number]
    if KEY_POSITION in news.column_names:
        keys.insert(0, news.column(KEY_POSITION).to_numpy())
    order = np.lexsort(keys)
    feed = Feed(spec, news.take(pa.array(order)).combine_chunks())
    number = number[order]
    if number[0] == EVERY_BUCKET:
        if number[-1] != EVERY_BUCKET:
            raise ValueError("tuples for every bucket beside tuples for one")
        return dict.fromkeys(buckets, feed.all())
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    bounds = pairwise([*starts.tolist(), len(number)])
    shares = {b: feed.share(*ab) for b, ab in zip(number[starts].tolist(), bounds)}
    foreign = set(shares) - set(buckets)
    if foreign:
        raise ValueError(f"tuples of the buckets {sorted(foreign)}, which are not owned here")
    return shares
