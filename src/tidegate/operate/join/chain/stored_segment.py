"""Reads from segments the stored tuples of a side that an instance compares with.

Only what the chain in memory does not have is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ORDER, ints
from tidegate.errors import TaskError
from tidegate.operate.join.chain.chain import BUCKET, FEW_ROWS, Chain, ChainRun, Flags
from tidegate.operate.join.chain.memory import MOST_MOVED_ROWS
from tidegate.operate.join.chain.part import BucketPart
from tidegate.operate.join.chain.run_index import Floats
from tidegate.operate.join.match import HeldTuples, terms_of
from tidegate.operate.join.placement.spread import Sight
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.join.tuple_order import KEY, arranged, total_order, without_key
from tidegate.operate.keeper import OrderHorizon
from tidegate.operate.kernels.order import flat
from tidegate.operate.operator import InstanceWork
from tidegate.operate.segment_cache import mapped_segments
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment, read_segment, rows_by_bucket

_MOST_ADOPTED_ROWS = 8_192
"""An instance that finds no chain in memory reads at most so many of the newest tuples into one."""


@dataclass(frozen=True)
class StoredSegments:
    """The segments of one side, for one batch of an instance that sees some of their tuples.

    `sights` say which tuples, by bucket and coordinate; there is one for each epoch. `adopted`
    gives tuples that an earlier run placed otherwise the buckets that they have now.
    """

    work: InstanceWork
    keeper: SideKeeper
    horizon: OrderHorizon
    sights: Sequence[Sight]
    adopted: Callable[[pa.Table], pa.Table]
    _found: dict[tuple[BucketSet, tuple[int, ...]], tuple[BucketSet, bool]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _flagged: dict[BucketSet, Flags] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def live(self) -> list[Segment]:
        """The segments that may have tuples which new ones meet here; decided without reading."""
        segments = self.work.state.get(SIDES[self.keeper.side], ())
        live = [s for s in segments if not self.horizon.passed(s)]
        return [s for s in live if s.tag != self.horizon.tag or self._mine(s)[0]]

    def newest(self, begin: int, most_bytes: int) -> tuple[Chain, list[HeldTuples]]:
        """A chain of the newest tuples, as many as may be in memory, and the other tables.

        Every batch stores a small segment. Together in one run they are searched faster, and the
        chain spares later batches the reading. `begin` is after all stored tuples.
        """
        since = self._since(begin, most_bytes)
        try:
            run = self._adopted([s for s in self.live if s.low >= since], since)
        except TaskError:  # whether that is an error depends on the tuples that ask: see `Newest`
            return Chain(begin), self.read(self.live)
        others = self.read([s for s in self.live if s.low < since])
        return Chain(since, () if run is None else (run,)), others

    def with_gained(self, chain: Chain, gained: Flags, begin: int) -> Chain | None:
        """The chain with the stored tuples of buckets that the instance got, from `since` on.

        None where these are too many, or where a value cannot be computed.
        """
        # Where the chain covers the window no segment is read, so none can bring a tuple twice.
        if chain.since > self.horizon.needed:
            chain = chain.after_segments([(s.low, s.high) for s in self.live], begin)
        came = replace(self, sights=[Sight(MIN_US, MAX_US, gained, newest=True)])
        segments = [s for s in came.live if s.high >= chain.since]
        if sum(s.rows for s in segments) > MOST_MOVED_ROWS:
            return None
        try:
            run = came._adopted(segments, chain.since)
        except TaskError:
            return None
        return chain if run is None else chain.with_tuples(run)

    def _since(self, begin: int, most_bytes: int) -> int:
        """The earliest coordinate from which on all tuples fit into memory.

        No segment has tuples on both sides of it: a chain must be complete, and what is before it
        is read segment by segment. So it moves back over whole segments, last ones first.
        """
        last_first = sorted(self.live, key=lambda s: s.high, reverse=True)
        since, low, rows, size = begin if last_first else MIN_US, MAX_US, 0, 0
        befores = [*(s.high + 1 for s in last_first[1:]), MIN_US]
        for segment, before in zip(last_first, befores, strict=False):
            rows, size = rows + segment.rows, size + segment.bytes
            if rows > _MOST_ADOPTED_ROWS or size > most_bytes:
                break
            low = min(low, segment.low)
            since = before if low >= before else since
        return since

    def _adopted(self, segments: Sequence[Segment], since: int) -> ChainRun | None:
        """The live tuples of some segments from `since` on, as a run; None where there is none.

        A TaskError where a term of them cannot be computed.
        """
        tables = list(self._rows(segments))
        if not any(table.num_rows for table in tables):
            return None
        spec, side = self.keeper.spec, self.keeper.side
        table = pa.concat_tables(tables).combine_chunks()
        table = table.take(pa.array(total_order(table)))
        coordinate = ints(table, self.keeper.order)
        table = table.select([*ORDER, BUCKET, *(name for name, _ in spec.side(side).columns)])
        past = int(np.searchsorted(coordinate, max(self.horizon.needed, since)))
        if past == len(coordinate):
            return None
        table, coordinate = table.slice(past), coordinate[past:]
        return ChainRun(table, coordinate, terms_of(spec, side, table), since)

    def release(self) -> None:
        """Unmap the segments of this side; call it where the batch reads none."""
        mapped_segments(self.work.store, self._owner, ())

    def read(self, segments: Sequence[Segment], stay: bool = True) -> list[HeldTuples]:
        """The tuples of some segments, a table for each.

        The segments that are mapped then stay mapped for the next batch, and no others. Without
        `stay` no segment is mapped or unmapped.
        """
        work, columns, way = self.work, self.keeper.columns, self.horizon.tag
        known = [(s, *self._mine(s)) for s in segments if s.tag == way]
        # Tables with tuples of other instances are searched only by an index. Without one, nearly
        # all tuples are candidates; and in a union a value that cannot be computed turns the index
        # off for all tuples that are searched, which must not depend on tuples of others.
        by_index = not self.keeper.spec.in_time_order
        own = [s for s, mine, all_ in known if (by_index and all_) or mine == s.buckets]
        mapped: dict[str, pa.Table] = {}
        if stay:
            mapped = mapped_segments(work.store, self._owner, own, columns, work.run, (KEY,))
        held = []
        for segment, mine, whole in known:
            # The token must not find what another query read: after its checkpoint was deleted,
            # the same file name may have other rows.
            file = (work.query, work.store.location, segment.name, segment.checksum, way)
            rows = mapped.get(segment.name)
            if rows is None:
                rows = read_segment(work.store, segment, mine, columns, more=(KEY,))
            if not whole:
                seen = self._seen(rows, rows.column(BUCKET).to_numpy())
                rows, key = without_key(rows.filter(pa.array(seen)).combine_chunks())
                held.append(HeldTuples(rows, (*file, mine, self._times), key=key))
            elif segment.name not in mapped or not by_index:
                rows, key = without_key(rows)
                held.append(HeldTuples(rows, (*file, mine), key=key))
            else:
                held.append(self._part(segment, rows, mine, (*file, segment.buckets)))
        for segment in segments:
            if segment.tag != way:
                rows = read_segment(work.store, segment, columns=columns)
                rows, key = self._adapted(rows)
                held.append(HeldTuples(rows, key=key))
        return held

    def _rows(self, segments: Sequence[Segment]) -> Iterator[pa.Table]:
        """The instance's tuples of some segments; those of local files are filtered in one go."""
        store, columns = self.work.store, self.keeper.columns
        files, others = list[Segment](), list[Segment]()
        for segment in segments:
            alike = store.files.local and segment.tag == self.horizon.tag
            (files if alike else others).append(segment)
        if files:
            rows = pa.concat_tables([read_segment(store, s, columns=columns) for s in files])
            yield rows.filter(pa.array(self._seen(rows, rows.column(BUCKET).to_numpy())))
        for held in self.read(others, stay=False):
            yield held.own.select(columns)

    def _part(
        self, segment: Segment, rows: pa.Table, mine: BucketSet, token: tuple[Hashable, ...]
    ) -> HeldTuples:
        """The instance's tuples of a segment that also has tuples of others; nothing is copied."""
        rows, key = without_key(rows)
        bucket: npt.NDArray[np.int32] = flat(rows.column(BUCKET)).to_numpy()
        counts = rows_by_bucket(self.work.store, segment)
        flags = self._flags(mine)
        counted = None if counts is None else int(counts[flags[: len(counts)]].sum())
        part = BucketPart(token, mine, flags, segment.buckets, bucket, counted)
        return HeldTuples(rows, token, part, segment.low, key, counts)

    @property
    def _owner(self) -> tuple[str, int, int]:
        return (self.work.query, self.work.instance, self.keeper.side)

    @cached_property
    def _wanted(self) -> list[BucketSet]:
        return [BucketSet.where(sight.buckets) for sight in self.sights]

    @cached_property
    def _times(self) -> tuple[tuple[int, int, BucketSet], ...]:
        """What a token needs to tell these sights from those of other epochs."""
        pairs = zip(self.sights, self._wanted, strict=True)
        return tuple((sight.since, sight.until, wanted) for sight, wanted in pairs)

    def _mine(self, segment: Segment) -> tuple[BucketSet, bool]:
        """The buckets of a segment with tuples in sight, and whether all their tuples are."""
        low, high = segment.low, segment.high
        met = tuple(i for i, sight in enumerate(self.sights) if sight.meets(low, high))
        mine, alike = self._within(segment.buckets, met)
        # Epochs follow each other without a gap, so first and last sight bound what is covered.
        covered = self.sights[0].since <= low and high < self.sights[-1].until
        return mine, covered and alike

    def _within(self, buckets: BucketSet, met: tuple[int, ...]) -> tuple[BucketSet, bool]:
        """The buckets that are in sight in some epochs, and whether they are so in each of these.

        Remembered by set, because thousands of segments have few different sets of buckets.
        """
        key = buckets, met
        if key not in self._found:
            sets = [buckets & self._wanted[i] for i in met]
            mine = BucketSet.union(sets)
            self._found[key] = mine, all(s == mine for s in sets)
        return self._found[key]

    def _flags(self, buckets: BucketSet) -> Flags:
        """A set of buckets as flags; one array for equal sets."""
        if buckets not in self._flagged:
            flags = np.zeros(self.work.mapping.buckets, np.bool_)
            flags[buckets.numbers()] = True
            self._flagged[buckets] = flags
        return self._flagged[buckets]

    def _seen(self, rows: pa.Table, buckets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        places = ints(rows, self.keeper.order)
        seen = [sight.sees(buckets, places) for sight in self.sights]
        return np.asarray(np.any(seen, axis=0))

    def _adapted(self, rows: pa.Table) -> tuple[pa.Table, Floats | None]:
        """The instance's tuples of a segment that an earlier run arranged or dealt otherwise.

        Tuples that are dealt in turn stay in their buckets. Tuples that are placed by key get the
        buckets of their keys, because new tuples of a key search nowhere else.
        """
        rows = self.adopted(rows)
        bucket = rows.column(BUCKET).to_numpy()
        rows = rows.filter(pa.array(self._seen(rows, bucket))).combine_chunks()
        rows = rows.take(pa.array(total_order(rows)))
        return arranged(self.keeper.spec, self.keeper.side, rows)


def merge_small(spec: JoinSpec, side: int, held: Sequence[HeldTuples]) -> list[HeldTuples]:
    """The tables with all small ones as one: sorting them costs less than several searches."""
    large = [h for h in held if h.table.num_rows > FEW_ROWS]
    small = [h for h in held if h.table.num_rows <= FEW_ROWS]
    if len(small) <= 1:
        return list(held)
    rows = pa.concat_tables(_own(small)).combine_chunks()
    rows = rows.take(pa.array(total_order(rows)))
    table, key = arranged(spec, side, rows)
    return [*large, HeldTuples(table, key=key)]


def _own(held: Sequence[HeldTuples]) -> Iterator[pa.Table]:
    """The searched tuples of many tables; tables with one set of buckets are filtered together."""
    parts: dict[int, list[HeldTuples]] = {}
    for one in held:
        if one.part is None or one.part.is_whole:
            yield one.table
        else:
            parts.setdefault(id(one.part.flags), []).append(one)
    for alike in parts.values():
        table = pa.concat_tables([one.table for one in alike])
        flags = next(one.part.flags for one in alike if one.part is not None)
        yield table.filter(pa.array(flags[table.column(BUCKET).to_numpy()]))
