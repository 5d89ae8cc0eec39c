"""Reads a source as if only some of its tuples were there, at the positions that they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.connector import Bools, Connector, Int64s, Reader, Rows, Source
from tidegate.schema import event_times


@dataclass(frozen=True)
class ChosenTuples:
    """Tuples of one source, by ascending position."""

    name: str
    positions: Int64s
    table: pa.Table


@dataclass(frozen=True)
class _ChosenReader(Reader):
    of: ChosenTuples
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Rows:
        low, high = np.searchsorted(self.of.positions, (self.start, self.stop))
        table = self.of.table.slice(low, high - low).select(list(columns))
        return Rows(table, self.of.positions[low:high])


class _ChosenSource(Source):
    """The tuples in memory; the positions between them have no row."""

    def __init__(self, of: ChosenTuples, time: str) -> None:
        self.id, self.schema = of.name, of.table.schema
        self._of = of
        self._times = event_times(of.table.column(time))[0]
        self.first = int(of.positions[0]) if len(of.positions) else 0
        self._end = int(of.positions[-1]) + 1 if len(of.positions) else 0

    def extend(self, rows: int) -> int:
        return self._end

    def ended(self) -> bool:
        return True

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        low, high = np.searchsorted(self._of.positions, (start, stop))
        here = self._of.positions[low:high] - start
        times, valid = np.zeros(stop - start, np.int64), np.zeros(stop - start, np.bool_)
        times[here], valid[here] = self._times[low:high], True
        return times, valid

    def reader(self, start: int, stop: int) -> Reader:
        return _ChosenReader(self._of, start, stop)

    def absent(self, start: int, stop: int) -> int:
        low, high = np.searchsorted(self._of.positions, (start, stop))
        return int(stop - start - (high - low))


class ChosenConnector(Connector):
    """Sources in memory, in their order, in place of those that a URI has."""

    def __init__(self, schema: pa.Schema, time: str, sources: Sequence[ChosenTuples]) -> None:
        self.schema = schema
        self._sources = [_ChosenSource(source, time) for source in sources]

    def discover(self) -> Sequence[Source]:
        return self._sources

    def live(self) -> bool:
        return False
