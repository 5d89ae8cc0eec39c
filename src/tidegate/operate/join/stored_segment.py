"""The stored tuples of a side that an instance compares with, read from segments.

They stand between the state of a join and its search, for what is not in memory (`chain`).
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
from tidegate.operate.join.chain import BUCKET, FEW_ROWS, Chain, ChainRun, Flags
from tidegate.operate.join.match import HeldTuples, terms_of
from tidegate.operate.join.memory import MOST_MOVED_ROWS
from tidegate.operate.join.part import BucketPart
from tidegate.operate.join.run_index import Floats
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.spread import Sight
from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.join.tuple_order import KEY, arranged, total_order, without_key
from tidegate.operate.keeper import OrderHorizon
from tidegate.operate.kernels.order import flat
from tidegate.operate.opened import mapped_segments
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment, read_segment, rows_by_bucket

_MOST_ADOPTED_ROWS = 8_192
"""So many of the newest tuples are put into memory by who finds none there."""


@dataclass(frozen=True)
class StoredSegments:
    """The segments of one side, for one batch of an instance that sees some of their tuples.

    `sights` say which, by bucket and time or number. `adopted` gives tuples that an earlier run has
    placed otherwise, in the buckets where they are now.
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
        """Those with tuples that new ones may meet here, as far as their bounds tell."""
        segments = self.work.state.get(SIDES[self.keeper.side], ())
        live = [s for s in segments if not self.horizon.passed(s)]
        return [s for s in live if s.tag != self.horizon.tag or self._mine(s)[0]]

    def newest(self, begin: int, most_bytes: int) -> tuple[Chain, list[HeldTuples]]:
        """The newest tuples, as many as may be kept in memory, and the others run by run.

        Those that many batches have stored are in many small segments, which are searched faster
        together, and need not be put together by every batch. `begin` is after all of them.
        """
        since = self._since(begin, most_bytes)
        try:
            run = self._adopted([s for s in self.live if s.low >= since], since)
        except TaskError:  # then it is for who asks whether that is an error
            return Chain(begin), self.read(self.live)
        others = self.read([s for s in self.live if s.low < since])
        return Chain(since, () if run is None else (run,)), others

    def taken_over(self, chain: Chain, gained: Flags, begin: int) -> Chain | None:
        """A chain with what is stored of buckets that have come, from where it begins on.

        None where that is too much, or a value of it cannot be computed.
        """
        if chain.since > self.horizon.needed:
            chain = chain.apart([(s.low, s.high) for s in self.live], begin)
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
        """The coordinate from which on tuples may be kept in memory, and no segment has others."""
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
        """The live tuples of some segments in memory, as a run; None where there is none.

        A TaskError where what is searched of them cannot be computed.
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
        """Let go of what is mapped: nothing is read of it in this batch."""
        mapped_segments(self.work.store, self._owner, ())

    def read(self, segments: Sequence[Segment], stay: bool = True) -> list[HeldTuples]:
        """The tuples of some of them, run by run; what is mapped stays so for the next batch.

        Where it is not to `stay`, what is mapped already is as it was.
        """
        work, columns, way = self.work, self.keeper.columns, self.horizon.tag
        known = [(s, *self._mine(s)) for s in segments if s.tag == way]
        # In time order nearly all tuples are candidates. And a value that a branch cannot compute
        # counts for all tuples that are searched: others' must not be among them.
        by_index = not self.keeper.spec.in_time_order
        own = [s for s, mine, all_ in known if (by_index and all_) or mine == s.buckets]
        mapped: dict[str, pa.Table] = {}
        if stay:
            mapped = mapped_segments(work.store, self._owner, own, columns, work.run, (KEY,))
        held = []
        for segment, mine, whole in known:
            # Another query may have written the same file at the same place before.
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
        """The instance's tuples of some segments; of files of this host all are chosen at once."""
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
        """The instance's tuples of a segment that has those of others as well."""
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
        """What tells what is seen here from what is in another epoch."""
        pairs = zip(self.sights, self._wanted, strict=True)
        return tuple((sight.since, sight.until, wanted) for sight, wanted in pairs)

    def _mine(self, segment: Segment) -> tuple[BucketSet, bool]:
        """The buckets of a segment of which tuples are seen, and whether all of these are."""
        low, high = segment.low, segment.high
        met = tuple(i for i, sight in enumerate(self.sights) if sight.meets(low, high))
        mine, alike = self._within(segment.buckets, met)
        # The epochs follow each other without a gap.
        covered = self.sights[0].since <= low and high < self.sights[-1].until
        return mine, covered and alike

    def _within(self, buckets: BucketSet, met: tuple[int, ...]) -> tuple[BucketSet, bool]:
        """Those of some buckets that are seen in epochs, and whether they are so in each of them.

        Thousands of segments have few sets of buckets.
        """
        key = buckets, met
        if key not in self._found:
            sets = [buckets & self._wanted[i] for i in met]
            mine = BucketSet.union(sets)
            self._found[key] = mine, all(s == mine for s in sets)
        return self._found[key]

    def _flags(self, buckets: BucketSet) -> Flags:
        """A set of buckets by a flag each."""
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

        Tuples that were dealt in turn stay where they are; by key they belong where keys are, and
        go there with them at a switch.
        """
        rows = self.adopted(rows)
        bucket = rows.column(BUCKET).to_numpy()
        rows = rows.filter(pa.array(self._seen(rows, bucket))).combine_chunks()
        rows = rows.take(pa.array(total_order(rows)))
        return arranged(self.keeper.spec, self.keeper.side, rows)


def fewer(spec: JoinSpec, side: int, held: Sequence[HeldTuples]) -> list[HeldTuples]:
    """Small runs as one: sorting them again costs less than searching them one by one."""
    large = [h for h in held if h.table.num_rows > FEW_ROWS]
    small = [h for h in held if h.table.num_rows <= FEW_ROWS]
    if len(small) <= 1:
        return list(held)
    rows = pa.concat_tables(_own(small)).combine_chunks()
    rows = rows.take(pa.array(total_order(rows)))
    table, key = arranged(spec, side, rows)
    return [*large, HeldTuples(table, key=key)]


def _own(held: Sequence[HeldTuples]) -> Iterator[pa.Table]:
    """The tuples of many tables that are searched, those of one set of buckets together."""
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
