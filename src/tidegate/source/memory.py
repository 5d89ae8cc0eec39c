"""A source of rows that a Python program appends; any thread may append."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate import schedule
from tidegate.arrival import Floats
from tidegate.batch import from_bytes, to_bytes
from tidegate.clock import Clock
from tidegate.connector import Bools, Connector, Int64s, Reader, Rows, Source, check_columns
from tidegate.errors import SourceError
from tidegate.schema import check_time, event_times, fit_rows, normal_schema


@dataclass(frozen=True)
class MemoryReader(Reader):
    """Positions [start, stop), with their rows; these travel with it to tasks."""

    id: str
    start: int
    stop: int
    table: pa.Table

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.table.schema, self.id)
        return Rows.of_range(self.table.select(columns), self.start, self.stop)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.id, self.start, self.stop, to_bytes(self.table))


def _call(listeners: Sequence[Callable[[], None]]) -> None:
    for listener in listeners:
        listener()


def _restored(id: str, start: int, stop: int, data: bytes) -> MemoryReader:
    return MemoryReader(id, start, stop, from_bytes(data))


class Appends:
    """When rows were appended: one time for each table, kept as long as the tables are.

    `firsts`, shared with the source, has the first positions of the tables. `append` adds the time
    before the position, because readers take no lock.
    """

    def __init__(self, firsts: list[int]) -> None:
        self._firsts = firsts
        self.came_at: list[float] = []

    def at(self, positions: Int64s) -> Floats:
        """The arrival of each position, ascending; costs O(tables from the first to the last)."""
        low = bisect_right(self._firsts, int(positions[0])) - 1
        high = bisect_right(self._firsts, int(positions[-1]))
        which = np.searchsorted(np.array(self._firsts[low:high]), positions, "right") - 1
        times: Floats = np.array(self.came_at[low:high])[which]
        return times

    def drop(self, position: int) -> None:
        """Does nothing: another run may ask for the same positions."""


class MemorySource(Source, Connector):
    """A growing buffer of rows: source and connector in one; all methods are thread-safe.

    Rows count in the order of `append`. They stay as long as the source does, because a restart may
    read them again. `end` says that no more rows will come. Arrival times are read from `clock`,
    which must be the clock of the run if that is not the machine's.
    """

    def __init__(
        self,
        rows: pa.Table | Sequence[Mapping[str, object]] | None = None,
        *,
        time: str,
        schema: pa.Schema | None = None,
        id: str = "memory",
        clock: Clock | None = None,
    ) -> None:
        self.id = id
        self.time = time
        self._schema = None if schema is None else self._checked(normal_schema(schema))
        self._lock = threading.Lock()
        self._tables: list[pa.Table] = []
        self._firsts: list[int] = []
        self._clock = clock or schedule.current().clock
        self._appends = self.arrivals = Appends(self._firsts)
        self._rows = 0
        self._known = 0
        self._closed = False
        self._listeners: list[Callable[[], None]] = []
        if rows is not None:
            self.append(rows)

    def __repr__(self) -> str:
        with self._lock:
            ended = "ended" if self._closed else "not ended"
            rows = f"{self._rows:,} row{'' if self._rows == 1 else 's'}"
            return f"MemorySource({rows}, time {self.time}, {ended})"

    @property
    def schema(self) -> pa.Schema:
        """The given schema, or that of the first rows."""
        with self._lock:
            if self._schema is None:
                raise SourceError(
                    self.id,
                    "the columns must be known before a query starts",
                    "no rows yet",
                    "Give schema=, or append rows first.",
                )
            return self._schema

    def append(self, rows: pa.Table | Sequence[Mapping[str, object]]) -> None:
        """Add rows at the end, all of them or none; times without a zone are taken as UTC."""
        with self._lock:
            if self._closed:
                raise SourceError(
                    self.id, "rows come before end()", "rows after it", "Use a new source."
                )
            table = self._table(rows)
            if table.num_rows:
                self._tables.append(table)
                self._appends.came_at.append(self._clock.now())
                self._firsts.append(self._rows)
                self._rows += table.num_rows
            listeners = list(self._listeners)
        _call(listeners)

    def end(self) -> None:
        """Say that no more rows will come; a second call does nothing."""
        with self._lock:
            self._closed = True
            listeners = list(self._listeners)
        _call(listeners)

    @property
    def arrives(self) -> bool:
        """Whether more rows may come: until `end`."""
        with self._lock:
            return not self._closed

    def untaken(self, position: int) -> tuple[int, str]:
        """How many rows there are from a position on."""
        with self._lock:
            return self._rows - position, "rows"

    def tell(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every `append` and `end`, in the thread of that call."""
        with self._lock:
            self._listeners.append(listener)

    def tell_no_more(self, listener: Callable[[], None]) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def discover(self) -> Sequence[MemorySource]:
        return [self]

    def live(self) -> bool:
        with self._lock:
            return not self._closed

    def extend(self, rows: int) -> int:
        with self._lock:
            self._known = self._rows
            return self._known

    def ended(self) -> bool:
        with self._lock:
            return self._closed and self._known == self._rows

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        return event_times(self._slice(start, stop).column(self.time))

    def reader(self, start: int, stop: int) -> MemoryReader:
        return MemoryReader(self.id, start, stop, self._slice(start, stop))

    def _slice(self, start: int, stop: int) -> pa.Table:
        schema = self.schema
        with self._lock:
            low = bisect_right(self._firsts, start) - 1
            high = bisect_right(self._firsts, stop - 1)
            tables, first = self._tables[low:high], self._firsts[low] if low >= 0 else 0
        if start >= stop:
            return schema.empty_table()
        return pa.concat_tables(tables).slice(start - first, stop - start)

    def _table(self, rows: pa.Table | Sequence[Mapping[str, object]]) -> pa.Table:
        table = fit_rows(rows, self._schema, self.id, self.time)
        if self._schema is None:
            self._schema = self._checked(table.schema)
        return table

    def _checked(self, schema: pa.Schema) -> pa.Schema:
        check_time(schema, self.time, self.id)
        return schema
