"""Folds tuples into pieces of sessions, divides pieces into sessions, and merges pieces.

Without a MAX any neighbouring tuples can be one piece: pieces that are no further apart than the
gap are of one session. With a MAX a session ends some time after its first tuple, so the cut
depends on where open sessions began. Then tuples are folded at the instance that knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import TS, ints
from tidegate.operate.aggregate.function import fold_rows, merge_rows
from tidegate.operate.kernels.group import Groups, Rank, dense, pack, rank, rank_integers
from tidegate.operate.kernels.order import Ints, canonical, flat, integers
from tidegate.operate.session.spec import BUCKET, LAST, START, SessionSpec
from tidegate.route.partitioner import Router


@dataclass(frozen=True)
class Sessions:
    """The sessions of some rows: `numbers` by row; first and last time by session."""

    numbers: Ints
    starts: Ints
    lasts: Ints


def fold(spec: SessionSpec, rows: pa.Table, router: Router) -> pa.Table:
    """Fold tuples, in any order, into pieces with their buckets; only for sessions without a MAX.

    `rows` has `ts` (int64 microseconds), the key and argument columns, and for functions of the
    total order also `src` and `seq`. Costs O(rows) if they come in the order of time, otherwise a
    sort.
    """
    by_key, bucket = _routed(spec, rows, router)
    ts = integers(flat(rows.column(TS)))
    return _pieces(spec, rows, bucket, _divided(spec, cut(spec, by_key, ts, ts), ts))


def placed(spec: SessionSpec, rows: pa.Table, router: Router) -> pa.Table:
    """Give tuples the buckets of their keys, for `fold_after`."""
    _, bucket = _routed(spec, rows, router)
    used = {TS, *(name for name, _ in spec.keys), *(n for f in spec.functions for n in f.inputs)}
    names = [name for name in rows.column_names if name in used]
    return rows.select(names).add_column(0, BUCKET, bucket)


def fold_after(spec: SessionSpec, opened: pa.Table, rows: pa.Table) -> pa.Table:
    """Fold tuples that have their buckets into pieces; all are later than the open sessions."""
    ts = integers(flat(rows.column(TS)))
    by_key = grouped(spec, [opened, rows])
    first = np.concatenate([ints(opened, START), ts])
    found = cut(spec, by_key, first, np.concatenate([ints(opened, LAST), ts]))
    numbers = found.numbers[opened.num_rows :]
    own = _bounded(dense(Rank(numbers, len(found.starts))), ts)
    return _pieces(spec, rows, flat(rows.column(BUCKET)), _divided(spec, own, ts))


def _divided(spec: SessionSpec, found: Sessions, ts: Ints) -> Sessions:
    """Divide sessions of tuples into pieces, one for each slot (`SessionSpec.slots`)."""
    slots = spec.slots(ts)
    if slots is None:
        return found
    ranks = [Rank(found.numbers, len(found.starts)), rank_integers(slots)]
    return _bounded(dense(pack(ranks, len(ts))), ts)


def _bounded(groups: Groups, ts: Ints) -> Sessions:
    """The first and the last time of each group of tuples."""
    starts, lasts = np.full(groups.n, ts.max()), np.full(groups.n, ts.min())
    np.minimum.at(starts, groups.codes, ts)
    np.maximum.at(lasts, groups.codes, ts)
    return Sessions(groups.codes, starts, lasts)


def cut(spec: SessionSpec, by_key: Groups, first: Ints, last: Ints) -> Sessions:
    """Divide pieces into sessions of their keys; tuples are pieces too.

    Pieces may come in any order. Costs O(pieces) if they come by their first times, otherwise a
    sort.
    """
    from tidegate.operate.kernels.window.session_loop import sessions

    # The loop needs the pieces in the order of time, over all keys; most sources give them so.
    codes, order = by_key.codes, None
    if bool((first[1:] < first[:-1]).any()):
        order = np.argsort(first, kind="stable")
        codes, first, last = codes[order], first[order], last[order]
    numbers, starts, lasts = sessions()(codes, first, last, by_key.n, spec.gap_us, spec.longest_us)
    if order is not None:
        placed = np.empty_like(numbers)
        placed[order] = numbers
        numbers = placed
    return Sessions(numbers, starts, lasts)


def grouped(spec: SessionSpec, tables: Sequence[pa.Table]) -> Groups:
    """Number the keys in the rows of tables, taken one after the other."""
    keys = zip(*(_keys(spec, table) for table in tables), strict=True)
    ranks = [rank(pa.concat_arrays(parts)) for parts in keys]
    return dense(pack(ranks, sum(table.num_rows for table in tables)))


def merged(
    spec: SessionSpec, pieces: pa.Table, groups: Groups, starts: Ints, lasts: Ints
) -> pa.Table:
    """Merge the pieces of each group in the order of the rows; every group must have some.

    `starts` and `lasts` are the first and last times of the merged pieces.
    """
    head = pa.array(groups.rows)
    bucket = flat(pieces.column(BUCKET)).take(head)
    columns = [bucket, pa.array(starts), pa.array(lasts)]
    columns += [flat(pieces.column(name)).take(head) for name, _ in spec.keys]
    columns += merge_rows(spec.functions, groups, pieces)
    return pa.Table.from_arrays(columns, schema=spec.piece_schema)


def _routed(spec: SessionSpec, rows: pa.Table, router: Router) -> tuple[Groups, pa.Array]:
    """The key of every row, and its bucket."""
    keys = _keys(spec, rows)
    by_key = dense(pack([rank(key) for key in keys], rows.num_rows))
    heads = [key.take(pa.array(by_key.rows)) for key in keys]
    bucket = router.buckets(heads, by_key.n)[by_key.codes]
    return by_key, pa.array(bucket, pa.int32())


def _pieces(spec: SessionSpec, rows: pa.Table, bucket: pa.Array, found: Sessions) -> pa.Table:
    groups = Groups(found.numbers, len(found.starts))
    head = pa.array(groups.rows)
    columns = [bucket.take(head), pa.array(found.starts)]
    columns += [pa.array(found.lasts), *(key.take(head) for key in _keys(spec, rows))]
    columns += fold_rows(spec.functions, groups, rows)
    return pa.Table.from_arrays(columns, schema=spec.piece_schema)


def _keys(spec: SessionSpec, rows: pa.Table) -> list[pa.Array]:
    return [canonical(flat(rows.column(name), type_)) for name, type_ in spec.keys]
