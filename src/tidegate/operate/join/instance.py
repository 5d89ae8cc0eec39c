"""One instance of a join in one batch: which stored tuples the new ones meet, and what is kept.

The order of calls: `parts`, then `rows`, `segments` and `leave`.
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
from tidegate.operate.join.chain import BUCKET, Chain, ChainRun
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.match import RANK, HeldTuples, MatchedPairs, Matching, StoredTuples
from tidegate.operate.join.memory import SideMemory, find, leave
from tidegate.operate.join.newest import Newest, newest_of
from tidegate.operate.join.output import output_rows
from tidegate.operate.join.placement import JoinPlacement
from tidegate.operate.join.search import News
from tidegate.operate.join.spread import Sight
from tidegate.operate.join.state import SIDES
from tidegate.operate.join.stored_segment import StoredSegments, fewer
from tidegate.operate.join.tuple_order import with_key
from tidegate.operate.operator import InstanceWork
from tidegate.operate.spill import Spill
from tidegate.state.segment import Segment, write_segment

_MOST_NEW_ROWS = 8_192
"""What a batch with more new tuples of a side leaves is mapped: it is read once for many rows."""

_SHARE = 32
"""A side of an instance keeps tuples up to this part of the memory for caches."""

_STORED = "stored tuples"


@dataclass(frozen=True)
class SideTuples:
    """The tuples of a side in one batch: the newest, the others, and what was in memory."""

    newest: Newest
    stored: StoredTuples
    chain: Chain | None


@dataclass(frozen=True)
class InstanceJoin:
    """What an instance does with the new tuples of a batch."""

    work: InstanceWork
    placement: JoinPlacement

    def parts(self, news: Sequence[News]) -> tuple[list[Matching], list[SideTuples]]:
        """What finds all pairs of new tuples; and by side the tuples that the next batch may meet.

        Nothing is left for it while former owners finish what others see too.
        """
        in_memory = find(self.work, self._name)
        if self.placement.spread.holds_all and self.work.mapping.formers:
            return self._by_epoch(news), []
        part, sides = self._matching(news, in_memory, self._sights())
        return [part], sides

    def rows(self, pieces: Iterator[tuple[int, list[MatchedPairs]]]) -> tuple[pa.Table, ...]:
        """The output rows by port, made piece by piece and spilled where they are many."""
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
        """New tuples and the stored ones in sight."""
        sides = [self._side(i, news, in_memory[i], sights[i]) for i in range(2)]
        self.work.spans.mark("instance read state")
        newest, stored = (sides[0].newest, sides[1].newest), (sides[0].stored, sides[1].stored)
        by_row = self.placement.within_buckets
        return Matching(self.placement.spec, (news[0], news[1]), newest, stored, by_row), sides

    def _by_epoch(self, news: Sequence[News]) -> list[Matching]:
        """Matchings where epochs have grids of their own.

        What was stored in an epoch lies over its grid, and a new tuple meets it where the grid has
        both. So each epoch has the new tuples that its grid gives to this instance.
        """
        parts = []
        # Nothing is left for the next batch, so nothing is put together for it.
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
        """The tuples of a side that are compared with: what is in memory is not read again."""
        stored, chain = self._segments(side, sights), in_memory.chain
        begin, needed = self._begin(side), stored.horizon.needed
        held: list[HeldTuples] = []
        few = news[side].table.num_rows <= _MOST_NEW_ROWS
        if chain is not None and in_memory.gained is not None:
            chain = stored.taken_over(chain, in_memory.gained, begin) if few else None
        if chain is not None and chain.since <= needed:
            stored.release()
        elif chain is not None:
            chain = chain.apart([(s.low, s.high) for s in stored.live], begin)
            held = stored.read([s for s in stored.live if s.low < chain.since])
        elif few:
            chain, held = stored.newest(begin, _most_bytes())
        else:
            held = stored.read(stored.live)
        chain = None if chain is None else chain.needed(needed)
        behind = chain.newest if few and chain is not None else None
        asked = news[1 - side].table.num_rows > 0
        newest = newest_of(self.placement.spec, side, news[side], behind, asked)
        runs: Sequence[ChainRun] = ()
        if chain is not None:
            runs = chain.others if newest.behind else chain.runs
        held = fewer(self.placement.spec, side, held)
        return SideTuples(newest, StoredTuples(held, runs, needed), chain if few else None)

    def _sights(self) -> list[list[Sight]]:
        """What the instance sees of what is stored, by side."""
        instance, mapping = self.work.instance, self.work.mapping
        return [self.placement.spread.sights(instance, side, mapping) for side in range(2)]

    def _segments(self, side: int, sights: Sequence[Sight]) -> StoredSegments:
        keeper, before = self.placement.keepers[side], self.placement.before[side]
        horizon = keeper.horizon(self.work.previous_us, before)
        adopted = partial(self.placement.adopted, self.work.mapping, side)
        return StoredSegments(self.work, keeper, horizon, sights, adopted)

    def _begin(self, side: int) -> int:
        """The coordinate from which on tuples are new."""
        before = self.placement.before[side]
        return self.work.previous_us if self.placement.keepers[side].order == TS else before

    def leave(self, sides: Sequence[SideTuples], news: Sequence[News]) -> None:
        """Leave in memory what the next batch compares with, where it is little enough."""
        chains = []
        for side, tuples in enumerate(sides):
            newest, chain = tuples.newest, tuples.chain
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
            chains.append(chain.grown(run, needed=needed, end=end, most_bytes=_most_bytes()))
        own = not self.placement.spread.holds_all
        leave(self.work, self._name, (chains[LEFT], chains[RIGHT]), own)

    @property
    def _name(self) -> str:
        """The name of what stays in memory; what of others is seen is up to all owners.

        It may read files, and Python 3.11 locks a cached property for all objects of a class.
        """
        if not self.placement.spread.holds_all:
            return _STORED
        owners = zlib.crc32(self.work.mapping.owner_array.tobytes())
        return f"{_STORED} {owners} {self.placement.cells(self.work)}"

    def segments(self, side: int, news: News, own: npt.NDArray[np.bool_]) -> tuple[Segment, ...]:
        """Store the instance's own new tuples that a later one may still meet."""
        keeper, table = self.placement.keepers[side], news.table
        if keeper.order == RANK:
            table = table.append_column(RANK, pa.array(news.ranks))
        horizon = keeper.horizon(self.work.frontier_us, news.before + table.num_rows)
        lasting = own & (ints(table, keeper.order) >= horizon.needed)
        if not lasting.any():
            return ()
        name = f"{self.work.name}-{SIDES[side]}"
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
    """How much one side of an instance keeps in memory."""
    return MEMORY.limit_bytes // _SHARE
