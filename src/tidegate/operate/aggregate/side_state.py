"""State beside the panes: map tasks send it on a channel of its own, and one instance stores it.

Each kind is a table with a column `order` that decides how long a row lives. It is its own keeper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.state.segment.compaction import by_bucket
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

_PARTS = 16
"""With more tables in memory than these, they are merged into one."""


class SideState(Keeper):
    """Derive from it as a frozen dataclass."""

    name: ClassVar[str]
    """The name of the channel, and of the part of the state in a manifest."""

    order: ClassVar[str]

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a table; `bucket` is among them."""

    @abstractmethod
    def first(self, frontier_us: int) -> int:
        """The lowest `order` that is needed at a frontier."""

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(self.order, self.first(frontier_us))

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Merge tables into one; override it where rows can be added up."""
        return pa.concat_tables(parts)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(self.merged([rows]), self.order)

    def read(
        self, state: Mapping[str, Sequence[Segment]], store: Store, frontier_us: int
    ) -> list[pa.Table]:
        """Read the segments that are needed at a frontier, in the order in which rows came."""
        first = self.first(frontier_us)
        live = [s for s in state.get(self.name, ()) if s.high >= first]
        tables = (read_segment(store, s, None, self.schema.names) for s in live)
        return [table.replace_schema_metadata(None) for table in tables]

    def known(self, work: InstanceWork, arrived: Sequence[pa.Table]) -> list[pa.Table]:
        """All rows that are needed, those of this batch last; leaves them for the next batch."""
        held: list[pa.Table] | None = work.kept.take(self.name)
        if held is None:
            held = self.read(work.state, work.store, work.previous_us)
        known, first = [*held, *arrived], self.first(work.frontier_us)
        lasting = [
            part for part in known if part.num_rows and ints(part, self.order).max() >= first
        ]
        # To merge costs a pass over all rows, so it is done once for many batches.
        if len(lasting) > _PARTS:
            lasting = [self._lasting(lasting, work)]
        work.kept.leave(self.name, lasting, sum(part.nbytes for part in lasting))
        return known

    def written(
        self, work: InstanceWork, arrived: Sequence[pa.Table]
    ) -> dict[str, tuple[Segment, ...]]:
        """Write what arrived as one segment. All instances may get the rows; one writes them."""
        if not arrived:
            return {}
        if work.instance != work.mapping.owners[0]:
            return {self.name: ()}
        rows = by_bucket(self._lasting(arrived, work), self.order)
        if not rows.num_rows:
            return {self.name: ()}
        name = f"{work.name}-{self.name}"
        return {self.name: (write_segment(work.store, name, rows, order=self.order, tag=0),)}

    def _lasting(self, parts: Sequence[pa.Table], work: InstanceWork) -> pa.Table:
        rows = self.merged(parts)
        return rows.filter(pa.array(ints(rows, self.order) >= self.first(work.frontier_us)))
