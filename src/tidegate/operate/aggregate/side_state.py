"""State beside the panes: what map tasks send on a channel of their own, and one instance stores.

Each kind of it is a table whose rows live for some time from a number on, the `order`, and is the
keeper of that part of the state as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store

_PARTS = 16
"""How many parts of what is known are kept apart in memory."""


class SideState(Keeper):
    """Derive from it as a frozen dataclass."""

    name: ClassVar[str]
    """Of the channel, and of the part of the state in a manifest."""

    order: ClassVar[str]

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a table; `bucket` is among them."""

    @abstractmethod
    def first(self, frontier_us: int) -> int:
        """The first number that may still be asked for."""

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(self.order, self.first(frontier_us))

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Several tables as one."""
        return pa.concat_tables(parts)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(self.merged([rows]), self.order)

    def read(
        self, state: Mapping[str, Sequence[Segment]], store: Store, frontier_us: int
    ) -> list[pa.Table]:
        """What segments have that may still be asked for, in the order in which it came."""
        first = self.first(frontier_us)
        live = [s for s in state.get(self.name, ()) if s.high >= first]
        tables = (read_segment(store, s, None, self.schema.names) for s in live)
        return [table.replace_schema_metadata(None) for table in tables]

    def known(self, work: InstanceWork, arrived: Sequence[pa.Table]) -> list[pa.Table]:
        """All that may be asked for, what arrived in this batch last; it is left for the next."""
        held: list[pa.Table] | None = work.kept.take(self.name)
        if held is None:
            held = self.read(work.state, work.store, work.previous_us)
        known, first = [*held, *arrived], self.first(work.frontier_us)
        lasting = [
            part for part in known if part.num_rows and ints(part, self.order).max() >= first
        ]
        # Merging costs, and is done seldom; so what waits stays small.
        if len(lasting) > _PARTS:
            lasting = [self._lasting(lasting, work)]
        work.kept.leave(self.name, lasting, sum(part.nbytes for part in lasting))
        return known

    def written(
        self, work: InstanceWork, arrived: Sequence[pa.Table]
    ) -> dict[str, tuple[Segment, ...]]:
        """What arrived as one segment: all instances may know it, and one of them writes it."""
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
