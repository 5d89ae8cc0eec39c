"""Stores the grids of cells by which a join has placed its tuples, each from a batch on.

A tuple stays in the bucket in which it was stored. So a search goes by every grid that has placed
tuples which are still in a window; there are at most a few. They are stored as one small segment,
which is written anew when they change.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.memory import Memory
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.route.cell import CellGrid
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

PENDING = MAX_US, MAX_US
"""Where a grid begins, by side, that has placed no tuple yet: after all tuples."""

GRIDS = "grids"
"""The part of the state that has the grids."""

_VERSION = "version"

_SCHEMA = pa.schema(
    [
        (BUCKET, pa.int32()),
        (_VERSION, pa.int64()),
        ("grid", pa.int64()),
        ("batch", pa.int64()),
        ("left", pa.int64()),
        ("right", pa.int64()),
        ("width", pa.float64()),
        ("cell", pa.int64()),
        ("fan", pa.int64()),
    ]
)
"""A row for each grid, without a `cell`, and a row for each of its hot cells; `bucket` is 0."""


@dataclass(frozen=True)
class GridEpoch:
    """A grid, and the first `batch` whose tuples it places.

    `since` is the coordinate by side at which these tuples begin: an event time, or a number where
    windows count tuples. It is PENDING until the batch before is done.
    """

    since: tuple[int, int]
    grid: CellGrid
    batch: int = 0


@dataclass(frozen=True)
class GridKeeper(Keeper):
    """Keeps the newest segment only, which has all grids; `tag` names the values of the cells."""

    tag: int
    order: ClassVar[str] = _VERSION

    @property
    def columns(self) -> list[str]:
        return list(_SCHEMA.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        newest = max((s.high for s in segments), default=MIN_US)
        newest = MAX_US if frontier_us == MAX_US else newest
        return OrderHorizon(_VERSION, newest, self.tag)

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        return [None] * len(segments)

    def read(
        self, state: Mapping[str, Sequence[Segment]], store: Store
    ) -> tuple[GridEpoch, ...] | None:
        """The stored grids, oldest first; None where none was stored for these values."""
        segments = [s for s in state.get(GRIDS, ()) if s.tag == self.tag]
        if not segments:
            return None
        newest = max(segments, key=lambda s: s.high)
        key = store.location, newest.name, newest.checksum
        return _READ.get(key, lambda: _epochs(read_segment(store, newest, None, _SCHEMA.names)))

    def write(self, work: InstanceWork, epochs: Sequence[GridEpoch]) -> tuple[Segment, ...]:
        """Store grids in place of all that are stored; small, whatever the instances."""
        version = max((s.high for s in work.state.get(GRIDS, ())), default=0) + 1
        rows = []
        for number, epoch in enumerate(epochs):
            left, right = epoch.since
            grid: dict[str, float] = {BUCKET: 0, _VERSION: version, "grid": number}
            grid |= {"batch": epoch.batch, "left": left, "right": right}
            grid["width"] = epoch.grid.width
            rows.append(grid)
            hot = zip(epoch.grid.hot, epoch.grid.fans, strict=True)
            rows += [{**grid, "cell": cell, "fan": fan} for cell, fan in hot]
        # A second try may have surveyed less, and must not write other bytes into the same file.
        name = f"{work.name}-{GRIDS}-{zlib.crc32(repr(rows).encode()):08x}"
        table = pa.Table.from_pylist(rows, _SCHEMA)
        return (write_segment(work.store, name, table, _VERSION, self.tag),)


def _epochs(rows: pa.Table) -> tuple[GridEpoch, ...]:
    found: dict[int, GridEpoch] = {}
    for row in rows.to_pylist():
        number = row["grid"]
        if row["cell"] is None:
            since = row["left"], row["right"]
            found[number] = GridEpoch(since, CellGrid(row["width"]), row["batch"])
            continue
        epoch = found[number]
        hot, fans = (*epoch.grid.hot, row["cell"]), (*epoch.grid.fans, row["fan"])
        grid = CellGrid(epoch.grid.width, hot, fans)
        found[number] = GridEpoch(epoch.since, grid, epoch.batch)
    return tuple(found[number] for number in sorted(found))


_READ = Memory(sys.maxsize).cache(1, size=lambda epochs: 0, most_entries=64)
"""The grids of the segments that this process has read; segments never change."""
