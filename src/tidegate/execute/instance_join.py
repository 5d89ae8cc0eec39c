"""One instance of a join, between the tuples dealt to it and its part of the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import ORDER, TS, to_bytes
from tidegate.collect.pair import pair_rows, sorted_pairs
from tidegate.execute.job import (
    ALL,
    EVERY,
    GRID,
    KEY,
    PARTIAL,
    Job,
    Outcome,
    Parcel,
    Piece,
    Split,
)
from tidegate.execute.retention import SIDES, SideKeeper
from tidegate.operate.join.match import (
    BUCKET,
    RANK,
    Held,
    News,
    Pairs,
    arranged,
    match,
    places,
    total_order,
)
from tidegate.operate.join.spec import LEFT
from tidegate.operate.kernels.expression import evaluate
from tidegate.plan.physical import JoinPlan, Port
from tidegate.route.bucket import bucket_of, hash_of
from tidegate.schema import TIME
from tidegate.spans import Spans
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

_SMALL_ROWS = 1_024

Owners = npt.NDArray[np.int32]


def deal_join(job: Job, split: int, table: pa.Table) -> list[Parcel]:
    """Give every tuple of a split its bucket, and send it to the instances that see it."""
    join = _join(job)
    side = join.sides[job.splits[split].input]
    if join.routing == KEY:
        bucket = bucket_of(_keys(join, side, table), job.mapping.buckets)
    else:
        bucket = _dealt(job, job.splits[split], table.num_rows)
    table = table.add_column(3, BUCKET, pa.array(bucket))
    if job.spread == ALL:
        return [Parcel(EVERY, split, PARTIAL, to_bytes(table))]
    owners = np.asarray(job.mapping.owners, np.int32)[bucket]
    parcels = []
    for instance in range(job.mapping.instances):
        mine = table.filter(pa.array(_sees(job.spread, job, side, instance, owners)))
        if mine.num_rows:
            parcels.append(Parcel(instance, split, PARTIAL, to_bytes(mine)))
    return parcels


def _dealt(job: Job, split: Split, rows: int) -> npt.NDArray[np.int32]:
    """Buckets round-robin in the order of the source, over the instances and then over theirs.

    A source goes on where its split before ended. Behind a filter that is not known; a place by
    hash then keeps a filter that lets every n-th tuple pass from favouring an instance.
    """
    instances = job.mapping.instances
    prefix = job.subquery.prefixes[split.input]
    filtered = bool(prefix.where) or prefix.sql_where is not None
    spot = (split.source, split.start if filtered else 0)
    first = int(hash_of([pa.array([s]) for s in spot])[0] >> np.uint64(32))
    turn = np.arange(rows, dtype=np.int64) + first + (0 if filtered else split.start)
    owned = [np.asarray(job.mapping.owned_by(i), np.int32) for i in range(instances)]
    bucket = np.empty(rows, np.int32)
    for instance, mine in enumerate(owned):
        chosen = turn % instances == instance
        bucket[chosen] = mine[turn[chosen] // instances % len(mine)]
    return bucket


def grid(instances: int) -> tuple[int, int]:
    """Rows and columns of a grid of exactly so many instances, as square as can be."""
    rows = next(r for r in range(int(instances**0.5), 0, -1) if instances % r == 0)
    return rows, instances // rows


def _sees(spread: str, job: Job, side: int, instance: int, owners: Owners) -> npt.NDArray[np.bool_]:
    """Which tuples, by the owners of their buckets, an instance sees."""
    if spread == GRID:
        columns = grid(job.mapping.instances)[1]
        if side == LEFT:
            return np.asarray(owners // columns == instance // columns)
        return np.asarray(owners % columns == instance % columns)
    return np.asarray(owners == instance)


def run_join(
    job: Job,
    join: JoinPlan,
    instance: int,
    partials: Sequence[tuple[int, pa.Table]],
    spans: Spans,
) -> Outcome:
    """Match the new tuples with those held here and among themselves; keep the instance's own."""
    owners = np.asarray(job.mapping.owners, np.int32)
    tables = [_in_order(job, side, partials) for side in range(2)]
    at = places(tables[0], tables[1])
    news, own = [], []
    for side, table in enumerate(tables):
        bucket: npt.NDArray[np.int32] = table.column(BUCKET).to_numpy()
        owned = owners[bucket] == instance
        held = owned if job.spread == ALL else np.ones(len(owned), np.bool_)
        news.append(News(table, at[side], held, job.before[side]))
        own.append(owned)
    spans.mark("instance merge")
    store = job.store.open()
    stored = [_stored(store, job, side, instance) for side in range(2)]
    spans.mark("instance read state")
    found, work = match(join.spec, (news[0], news[1]), (stored[0], stored[1]))
    spans.mark("instance match")
    pieces = tuple(Piece.of(p, _output(p, join, found)) for p in job.subquery.ports)
    spans.mark("instance output")
    segments = {
        SIDES[side]: _kept(store, job, side, instance, news[side], own[side]) for side in range(2)
    }
    spans.mark("instance write")
    counts = {
        "comparisons": work.implied,
        "compared": work.made,
        "left": int(own[0].sum()),
        "right": int(own[1].sum()),
        "held": int(own[0].sum() + own[1].sum()),
    }
    return Outcome(instance, pieces, segments, counts=counts)


def _join(job: Job) -> JoinPlan:
    assert job.subquery.join is not None
    return job.subquery.join


def _in_order(job: Job, side: int, partials: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    """The new tuples of a side in the total order."""
    join = _join(job)
    mine = [t for split, t in partials if join.sides[job.splits[split].input] == side]
    if not mine:
        return _schema(join, side).empty_table()
    table = pa.concat_tables(mine).combine_chunks()
    order = total_order(table)
    if (order[1:] < order[:-1]).any():
        table = table.take(pa.array(order))
    return table


def _schema(join: JoinPlan, side: int) -> pa.Schema:
    order = [(c, pa.int64()) for c in ORDER]
    return pa.schema([*order, (BUCKET, pa.int32()), *join.spec.side(side).columns])


def _stored(store: Store, job: Job, side: int, instance: int) -> list[Held]:
    """The stored tuples of a side that an instance compares with, segment by segment."""
    owners = np.asarray(job.mapping.owners, np.int32)
    # Where all new tuples are seen, the stored ones are divided.
    seen = _sees(KEY if job.spread == ALL else job.spread, job, side, instance, owners)
    held, wanted = [], BucketSet.where(seen)
    keeper = SideKeeper(_join(job), side)
    horizon = keeper.horizon(job.previous_us, job.before[side])
    for segment in job.state.get(SIDES[side], ()):
        if horizon.passed(segment):
            continue
        if segment.tag != keeper.way:
            rows = _adapted(job, side, read_segment(store, segment), seen)
            held.append(Held(rows))
            continue
        mine = segment.buckets & wanted
        if mine:
            # Another query may have written the same file at the same place before.
            file = (store.location, segment.name, segment.checksum)
            token = (job.subquery.fingerprint, job.subquery.name, *file, keeper.way, mine)
            held.append(Held(read_segment(store, segment, mine), token))
    return _fewer(_join(job), side, held)


def _fewer(join: JoinPlan, side: int, held: Sequence[Held]) -> list[Held]:
    """Small runs as one: sorting them again costs less than searching them one by one."""
    large = [h for h in held if h.table.num_rows > _SMALL_ROWS]
    small = [h.table for h in held if h.table.num_rows <= _SMALL_ROWS]
    if len(small) <= 1:
        return list(held)
    rows = pa.concat_tables(small).combine_chunks()
    rows = rows.take(pa.array(total_order(rows)))
    return [*large, Held(arranged(join.spec, side, rows))]


def _adapted(job: Job, side: int, rows: pa.Table, seen: npt.NDArray[np.bool_]) -> pa.Table:
    """The instance's tuples of a segment that an earlier run arranged or dealt in another way."""
    join = _join(job)
    bucket = rows.column(BUCKET).to_numpy()
    if join.routing == KEY:
        bucket = bucket_of(_keys(join, side, rows), job.mapping.buckets)
    rows = rows.filter(pa.array(seen[bucket])).combine_chunks()
    return arranged(join.spec, side, rows.take(pa.array(total_order(rows))))


def _keys(join: JoinPlan, side: int, table: pa.Table) -> list[pa.Array]:
    return [evaluate(i.value(side), table) for i in join.spec.equalities]


def _kept(
    store: Store, job: Job, side: int, instance: int, news: News, own: npt.NDArray[np.bool_]
) -> tuple[Segment, ...]:
    """Store the instance's own new tuples that a later one may still meet."""
    keeper = SideKeeper(_join(job), side)
    table = news.table
    if keeper.order == RANK:
        table = table.append_column(RANK, pa.array(news.ranks))
    horizon = keeper.horizon(job.frontier_us, news.before + table.num_rows)
    column = table.column(keeper.order).to_numpy()
    table = table.filter(pa.array(own & (column >= horizon.needed)))
    if not table.num_rows:
        return ()
    name = f"{job.name}-{instance:04d}-{SIDES[side]}"
    table = arranged(_join(job).spec, side, table.combine_chunks())
    return (write_segment(store, name, table, keeper.order, keeper.way, grouped=False),)


def _output(port: Port, join: JoinPlan, found: Sequence[Pairs]) -> pa.Table:
    """The output rows of matching pairs, in order, with what a merge needs."""
    parts, later = [], []
    for pairs in found:
        last = pairs.left if pairs.later == LEFT else pairs.right
        past = pairs.right if pairs.later == LEFT else pairs.left
        rows = {n: pairs.left.column(n) for n, _ in join.spec.left.columns}
        rows |= {n: pairs.right.column(n) for n, _ in join.spec.right.columns}
        table = pa.table({"ts": last.column(TS).cast(TIME), **rows})
        place = pairs.place
        for predicate in port.where:
            mask = pc.fill_null(evaluate(predicate, table), False)
            table, last, past = (t.filter(mask) for t in (table, last, past))
            place = place[mask.to_numpy(zero_copy_only=False)]
        named = {"ts": table.column("ts")}
        named |= {name: evaluate(expr, table) for name, expr in port.outputs}
        parts.append(pair_rows(named, last, past))
        later.append(place)
    if not parts:
        order = {c: pa.array([], pa.int64()) for c in ORDER}
        nothing = pa.table(order)
        empty = {f.name: pa.array([], f.type) for f in port.schema}
        return pair_rows(empty, nothing, nothing)
    return sorted_pairs(pa.concat_tables(parts), np.concatenate(later))
