"""Says how the stored tuples of a join are kept in segments, and for how long."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ORDER, TS
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.match import RANK
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.tuple_order import arranged, with_key
from tidegate.operate.keeper import CELLS, Keeper, OrderHorizon
from tidegate.state.segment.segment import Segment

BY_KEY, ROUND_ROBIN, BY_RANGE = "key", "round-robin", "range"
"""The routings: a tuple is stored in the bucket of its key, in any bucket in turn, or by the range
of the value that a band compares."""

SIDES = ("left", "right")
"""The parts of the state that have the tuples, by side."""


@dataclass(frozen=True)
class SideKeeper(Keeper):
    """Keeps the stored tuples of one side, each segment in the order in which it is searched.

    A segment has the keys of that order as a column: a search maps them and computes nothing. Only
    segments of one instance are merged, so that it searches fewer and larger ones. A segment's
    `tag` says how it was arranged and dealt, because an earlier run may have chosen another method,
    routing or predicate. `keys` are the expressions that the `routing` places by, if by keys.
    """

    spec: JoinSpec
    routing: str
    keys: tuple[str, ...]
    side: int
    dead_share = 0.4
    grouped = False
    absent = None

    @property
    def _extent(self) -> tuple[int | None, int | None]:
        extent = self.spec.side(self.side).extent
        return extent.range_us, extent.rows

    @property
    def order(self) -> str:
        return TS if self._extent[1] is None else RANK

    @property
    def columns(self) -> list[str]:
        rank = [RANK] if self.order == RANK else []
        return [*ORDER, BUCKET, *(name for name, _ in self.spec.side(self.side).columns), *rank]

    @property
    def cell(self) -> int:
        return max((self._extent[0] or self._extent[1] or 0) // CELLS, 1)

    @cached_property
    def way(self) -> int:
        """The tag of segments that are arranged and dealt as this keeper does."""
        spec = self.spec
        arranged = [[i.exact for i in probe.indexed] for probe in spec.probes]
        return zlib.crc32(repr((spec.method, arranged, self.routing, [*self.keys])).encode())

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        range_us, rows = self._extent
        if rows is not None:
            return OrderHorizon(RANK, tuples - rows, self.way)
        assert range_us is not None
        if frontier_us in (MIN_US, MAX_US):
            return OrderHorizon(TS, frontier_us, self.way)
        return OrderHorizon(TS, frontier_us - range_us, self.way)

    def arrange(self, rows: pa.Table) -> pa.Table:
        # Segments of one instance follow each other in time. So the stable sort by key leaves equal
        # keys in the total order, which a search relies on.
        return with_key(*arranged(self.spec, self.side, rows.combine_chunks()))

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        by_bucket = np.asarray(owners, np.int32)
        distinct = dict.fromkeys(s.buckets for s in segments)
        several = -1
        owner = {b: by if (by := b.owner(by_bucket)) is not None else several for b in distinct}
        way = self.way
        alike = [s.tag == way and s.low >= since for s in segments]
        return [owner[s.buckets] if a else None for s, a in zip(segments, alike, strict=True)]
