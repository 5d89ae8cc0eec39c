"""Reads the rows of one subquery as input of another, in an order that no batch cut changes.

The place of a tuple of an edge is its time and its number among the tuples that are read with it.
All tuples of one instant are in one batch and in one span. So the order does not depend on how
batches or spans were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.collect.order import HIDDEN, OutputOrder
from tidegate.connector import Reader, Rows
from tidegate.execute.job import Outcome, Piece
from tidegate.operate.port import Port

SPAN_ROWS = 262_144
"""About how many rows of an edge one task reads; fixed, so that nothing depends on the cores."""


@dataclass(frozen=True)
class EdgeReader(Reader):
    """A span of event times of the rows on an edge; a task can read it."""

    order: OutputOrder
    port: Port
    pieces: tuple[Piece, ...]
    low_us: int
    high_us: int
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Rows:
        """The named columns, in the order of the edge; other columns are not merged."""
        wanted = {*columns, self.port.time}
        fields = [f for f in self.port.carried if f.name in wanted]
        tables = [
            table.select([n for n in table.column_names if n in wanted or n.startswith(HIDDEN)])
            for table in (self._part(p.load(*self._span())) for p in self.pieces)
        ]
        rows = replace(self.port, schema=pa.schema(fields)).merged(self.order, tables)
        return Rows(rows.select(columns), np.arange(rows.num_rows, dtype=np.int64))

    def _span(self) -> tuple[int, int]:
        """The span in times of the column, which differ from event times by the port's offset."""
        ends = (self.low_us, MIN_US), (self.high_us, MAX_US)
        low, high = (us if us == end else us - self.port.offset_us for us, end in ends)
        return low, high

    def _part(self, table: pa.Table) -> pa.Table:
        if (self.low_us, self.high_us) == (MIN_US, MAX_US):
            return table
        times = table.column(self.port.time).cast(pa.int64()).to_numpy() + self.port.offset_us
        low, high = np.searchsorted(times, [self.low_us, self.high_us])
        return table.slice(low, high - low)


@dataclass(frozen=True)
class Delivery:
    """All rows of one batch on an edge; `source` names the job that made them."""

    source: str
    order: OutputOrder
    port: Port
    pieces: tuple[Piece, ...]

    @staticmethod
    def of(
        source: str, order: OutputOrder, number: int, port: Port, outcomes: Sequence[Outcome]
    ) -> Delivery:
        return Delivery(source, order, port, tuple(o.pieces[number] for o in outcomes))

    @property
    def rows(self) -> int:
        return sum(p.count for p in self.pieces)

    @property
    def low_us(self) -> int:
        return min((p.low_us for p in self.pieces if p.count), default=MAX_US)

    @property
    def high_us(self) -> int:
        return max((p.high_us for p in self.pieces if p.count), default=MIN_US)

    def readers(self) -> list[EdgeReader]:
        """One reader for each task, over equal spans of time; independent of the instances."""
        if not self.rows:
            return []
        # With LIMIT a port leaves rows out, which only one reader of all rows can decide.
        parts = 1 if self.port.leaves_out else -(-self.rows // SPAN_ROWS)
        low, width = self.low_us, self.high_us - self.low_us + 1
        bounds = [MIN_US, *(low + width * i // parts for i in range(1, parts)), MAX_US]
        size = -(-self.rows // parts)
        return [
            EdgeReader(
                order=self.order,
                port=self.port,
                pieces=self.pieces,
                low_us=first,
                high_us=last,
                start=i * size,
                stop=min((i + 1) * size, self.rows),
            )
            for i, (first, last) in enumerate(pairwise(bounds))
        ]
