"""One instance of a join in one batch: which stored tuples the new ones meet, and what it stores.

Call `parts`, then `rows`, `segments` and `leave`, each once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import TS, ints
from tidegate.memory import MEMORY
from tidegate.operate.join.chain.chain import BUCKET, Chain, ChainRun
from tidegate.operate.join.chain.memory import SideMemory, find, leave
from tidegate.operate.join.chain.newest import Newest, newest_of
from tidegate.operate.join.chain.stored_segment import StoredSegments, merge_small
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.match import RANK, HeldTuples, MatchedPairs, Matching, StoredTuples
from tidegate.operate.join.output import output_rows
from tidegate.operate.join.placement.placement import JoinPlacement
from tidegate.operate.join.placement.spread import Sight
from tidegate.operate.join.search import News
from tidegate.operate.join.state import SIDES
from tidegate.operate.join.tuple_order import with_key
from tidegate.operate.operator import InstanceWork
from tidegate.operate.spill import Spill
from tidegate.state.segment.segment import Segment, write_segment

_MOST_NEW_ROWS = 8_192
"""With more new tuples of a side, a batch keeps no chain of it in memory.

The next batch maps the segments instead: opening them is little work beside so many rows.
"""

_SHARE = 32
"""One side of an instance keeps a chain of at most this fraction of the memory for caches."""

_STORED = "stored tuples"


@dataclass(frozen=True)
class SideTuples:
    """The tuples of a side in one batch: the newest, the stored ones, and the chain in memory.

    `chain` is None where none is kept for the next batch.
    """

    newest: Newest
    stored: StoredTuples
    chain: Chain | None


@dataclass(frozen=True)
class InstanceJoin:
    """The work of an instance on the new tuples of one batch."""

    work: InstanceWork
    placement: JoinPlacement

    def parts(self, news: Sequence[News]) -> tuple[list[Matching], list[SideTuples]]:
        """The matchings that find all pairs of new tuples; and by side the tuples they met.

        The latter are empty, and no chain is kept, while former owners finish windows over tuples
        that others see too.
        """
        in_memory = find(self.work, self._name)
        if self.placement.spread.holds_all and self.work.mapping.formers:
            return self._by_epoch(news), []
        part, sides = self._matching(news, in_memory, self._sights())
        return [part], sides

    def rows(self, pieces: Iterator[tuple[int, list[MatchedPairs]]]) -> tuple[pa.Table, ...]:
        """The output rows by port, made piece by piece; many rows are spilled to a file."""
        spills = [Spill.of(self.work, i) for i in range(len(self.work.ports))]
        try:
            for _, found in pieces:
                self.work.spans.mark("instance match")
                for port, spill in zip(self.work.ports, spills, strict=True):
                    spill.add(output_rows(port, self.placement.spec, found))
                self.work.spans.mark("instance output")
            return tuple(spill.table() for spill in spills)
        finally:
            for spill in spills:
                spill.drop()

    def _matching(
        self,
        news: Sequence[News],
        in_memory: Sequence[SideMemory],
        sights: Sequence[Sequence[Sight]],
    ) -> tuple[Matching, list[SideTuples]]:
        """The matching of new tuples with the stored ones in sight, and these by side."""
        sides = [self._side(i, news, in_memory[i], sights[i]) for i in range(2)]
        self.work.spans.mark("instance read state")
        newest, stored = (sides[0].newest, sides[1].newest), (sides[0].stored, sides[1].stored)
        by_row = self.placement.within_buckets
        return Matching(self.placement.spec, (news[0], news[1]), newest, stored, by_row), sides

    def _by_epoch(self, news: Sequence[News]) -> list[Matching]:
        """A matching for each epoch that has tuples, because each has a spread of its own.

        A new tuple meets the tuples of an epoch at the instance to which that epoch's spread gives
        both. So each matching has the new tuples that this instance gets by that spread.
        """
        parts = []
        # No chain is kept for the next batch, so an empty one, which begins now, stands for it.
        nothing = [SideMemory(Chain(self._begin(side))) for side in range(2)]
        for epoch in zip(*self._sights(), strict=True):
            asking = []
            for new, sight in zip(news, epoch, strict=True):
                seen = np.flatnonzero(sight.buckets[new.table.column(BUCKET).to_numpy()])
                held = np.full(len(seen), sight.newest)
                asking.append(News(new.table.take(seen), new.place[seen], held, new.before))
            parts.append(self._matching(asking, nothing, [[s] for s in epoch])[0])
        return parts

    def _side(
        self,
        side: int,
        news: Sequence[News],
        in_memory: SideMemory,
        sights: Sequence[Sight],
    ) -> SideTuples:
        """The tuples of a side that new ones are compared with.

        What the chain has is not read from segments; segments have what is older.
        """
        stored, chain = self._segments(side, sights), in_memory.chain
        begin, needed = self._begin(side), stored.horizon.needed
        # Three cases: the chain reaches back over the whole window, and no segment is read; it
        # reaches back to a part, and older segments are read; there is none, and one is begun.
        held: list[HeldTuples] = []
        few = news[side].table.num_rows <= _MOST_NEW_ROWS
        if chain is not None and in_memory.gained is not None:
            chain = stored.with_gained(chain, in_memory.gained, begin) if few else None
        if chain is not None and chain.since <= needed:
            stored.release()
        elif chain is not None:
            chain = chain.after_segments([(s.low, s.high) for s in stored.live], begin)
            held = stored.read([s for s in stored.live if s.low < chain.since])
        elif few:
            chain, held = stored.newest(begin, _most_bytes())
        else:
            held = stored.read(stored.live)
        chain = None if chain is None else chain.from_coordinate(needed)
        behind = chain.newest if few and chain is not None else None
        asked = news[1 - side].table.num_rows > 0
        newest = newest_of(self.placement.spec, side, news[side], behind, asked)
        runs: Sequence[ChainRun] = ()
        if chain is not None:
            runs = chain.others if newest.behind else chain.runs
        held = merge_small(self.placement.spec, side, held)
        return SideTuples(newest, StoredTuples(held, runs, needed), chain if few else None)

    def _sights(self) -> list[list[Sight]]:
        """Which stored tuples the instance sees, by side and epoch."""
        instance, mapping = self.work.instance, self.work.mapping
        return [self.placement.spread.sights(instance, side, mapping) for side in range(2)]

    def _segments(self, side: int, sights: Sequence[Sight]) -> StoredSegments:
        keeper, before = self.placement.keepers[side], self.placement.before[side]
        horizon = keeper.horizon(self.work.previous_us, before)
        adopted = partial(self.placement.adopted, self.work.mapping, side)
        return StoredSegments(self.work, keeper, horizon, sights, adopted)

    def _begin(self, side: int) -> int:
        """The coordinate at which the new tuples of a side begin."""
        before = self.placement.before[side]
        return self.work.previous_us if self.placement.keepers[side].order == TS else before

    def leave(self, sides: Sequence[SideTuples], news: Sequence[News]) -> None:
        """Keep the chains of both sides in memory for the next batch; none where one is missing."""
        chains = []
        for side, tuples in enumerate(sides):
            newest, chain = tuples.newest, tuples.chain
            # Without terms there is no run to leave. The next batch reads the segments, and fails
            # there if one of its tuples asks for the value.
            if newest.terms is None or chain is None:
                return
            keeper = self.placement.keepers[side]
            count = news[side].before + news[side].table.num_rows
            needed = keeper.horizon(self.work.frontier_us, count).needed
            kept = newest.coordinate >= needed
            since = self._begin(side)
            if newest.behind:
                assert chain.newest is not None
                since = chain.newest.since
            run = newest.stored(kept, since) if kept.any() else None
            end = self.work.frontier_us if keeper.order == TS else count
            chains.append(chain.with_newest(run, needed=needed, end=end, most_bytes=_most_bytes()))
        own = not self.placement.spread.holds_all
        leave(self.work, self._name, (chains[LEFT], chains[RIGHT]), own)

    @property
    def _name(self) -> str:
        """The name of the chains in memory.

        Where an instance also holds tuples of others, which ones depends on all owners and on the
        cells: the name has both, so that chains of another mapping are not found. No cached
        property, because it may read files and Python 3.11 locks those for all objects of a class.
        """
        if not self.placement.spread.holds_all:
            return _STORED
        owners = zlib.crc32(self.work.mapping.owner_array.tobytes())
        return f"{_STORED} {owners} {self.placement.cells(self.work)}"

    def segments(self, side: int, news: News, own: npt.NDArray[np.bool_]) -> tuple[Segment, ...]:
        """Store the instance's own new tuples that a later tuple may still meet, as one segment."""
        keeper, table = self.placement.keepers[side], news.table
        if keeper.order == RANK:
            table = table.append_column(RANK, pa.array(news.ranks))
        horizon = keeper.horizon(self.work.frontier_us, news.before + table.num_rows)
        lasting = own & (ints(table, keeper.order) >= horizon.needed)
        if not lasting.any():
            return ()
        name = f"{self.work.name}-{SIDES[side]}"
        # A segment is sorted as it will be searched, with its keys beside the tuples: who takes
        # buckets over after a switch then maps the index and computes nothing.
        kept, key = np.flatnonzero(lasting), None
        if not self.placement.spec.in_time_order:
            ranked = news.key_order(self.placement.spec.probe, side)
            kept = ranked[lasting[ranked]]
            key = news.key(self.placement.spec.probe, side)[kept]
        table = with_key(table.take(pa.array(kept)), key)
        return (
            write_segment(self.work.store, name, table, keeper.order, keeper.way, grouped=False),
        )


def _most_bytes() -> int:
    """The bytes that the chain of one side of an instance may take."""
    return MEMORY.limit_bytes // _SHARE
