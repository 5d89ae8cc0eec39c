"""Gives the tuples of sources ids, and says which tuple an id is.

An id is the number of a source among those that were met, and the position in it: "3:1207".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connector import Bools, Connector, Int64s, OuterReader, Reader, Rows, Source
from tidegate.driver.connection import Connection
from tidegate.query.definition import StreamDef
from tidegate.query.trace import SEPARATOR, WHY
from tidegate.schema import event_times
from tidegate.sink.folder.late_tuples import LatePositions
from tidegate.source.backfill.leg import SelectedReader

_ID = ":"


class StreamUri(NamedTuple):
    """A URI of a stream: their numbers. Streams that are read twice are one."""

    stream: int
    uri: int


class TupleId(NamedTuple):
    """A tuple: the number of its source, and its position there."""

    source: int
    position: int


@dataclass
class Origins:
    """The sources that were met, by numbers of their own; grows with them.

    `listed` has the sources of each inlet in the order in which they count. Tuples that are `late`
    are left out.
    """

    streams: Sequence[StreamDef]
    late: LatePositions = field(default_factory=dict)
    listed: dict[StreamUri, list[str]] = field(default_factory=dict)
    sources: list[tuple[StreamUri, Source | None, str]] = field(default_factory=list)
    _numbers: dict[tuple[StreamUri, str], int] = field(default_factory=dict)

    def inlets(
        self, connections: Sequence[Connection], streams: Sequence[StreamDef]
    ) -> list[StreamUri]:
        """The inlet of each connection of a plan with these streams."""
        counts: dict[int, int] = defaultdict(int)
        found = []
        for connection in connections:
            first = self.streams.index(without_ids(streams[connection.stream]))
            found.append(StreamUri(first, counts[connection.stream]))
            counts[connection.stream] += 1
            self.listed.setdefault(found[-1], [])
        return found

    def note(self, inlet: StreamUri, name: str, source: Source | None = None) -> int:
        """The number of a source."""
        key = inlet, name
        if key not in self._numbers:
            self._numbers[key] = len(self.sources)
            self.sources.append((inlet, source, name))
            self.listed[inlet].append(name)
        number = self._numbers[key]
        if source is not None:
            self.sources[number] = (inlet, source, name)
        return number

    def traced(
        self, connections: Sequence[Connection], streams: Sequence[StreamDef], low_us: int
    ) -> list[Connection]:
        """The connections with ids of the tuples that are not before a time."""
        found = []
        for each, inlet in zip(connections, self.inlets(connections, streams), strict=True):
            time = self.streams[inlet.stream].time
            made = _TracedConnector(each.connector, self, inlet, time, low_us)
            found.append(replace(each, connector=cast(Connector, made)))
        return found


def without_ids(stream: StreamDef) -> StreamDef:
    """A stream as it was before it was traced."""
    fields = [field for field in stream.schema if field.name != WHY]
    return replace(stream, schema=pa.schema(fields))


def ids_of(texts: Iterable[str | None]) -> set[TupleId]:
    """The tuples that columns of ids name."""
    parts = (part for text in texts if text for part in text.split(SEPARATOR) if part)
    return {TupleId(*map(int, part.split(_ID))) for part in parts}


def made_of(texts: pa.ChunkedArray, ids: Collection[TupleId]) -> Bools:
    """Which rows have ids, and no others than these."""
    lists = pc.split_pattern(pc.fill_null(texts.combine_chunks(), ""), SEPARATOR)
    lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
    parts = lists.flatten()
    known = pa.array([f"{i.source}{_ID}{i.position}" for i in ids], pa.string())
    empty = pc.equal(parts, "").to_numpy(zero_copy_only=False)
    strange = ~pc.is_in(parts, known).to_numpy(zero_copy_only=False) & ~empty
    ends = lists.offsets.to_numpy()
    before = np.concatenate([[0], np.cumsum(strange)]), np.concatenate([[0], np.cumsum(~empty)])
    others, some = (np.diff(counts[ends]) for counts in before)
    mask: Bools = (others == 0) & (some > 0)
    return mask


class _Outer:
    """Another object, of which some things are changed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.schema = inner.schema.append(pa.field(WHY, pa.string()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TracedConnector(_Outer):
    def __init__(
        self, inner: Connector, origins: Origins, inlet: StreamUri, time: str, low_us: int
    ) -> None:
        super().__init__(inner)
        self._origins, self._inlet, self._time, self._low_us = origins, inlet, time, low_us
        self._held: dict[str, Source] = {}

    def discover(self) -> list[Source]:
        return [self._traced(source) for source in self._inner.discover()]

    def list_new(self) -> Sequence[Any]:
        found: Sequence[Any] = self._inner.list_new()
        for one in found:
            self._origins.note(self._inlet, one.id)
        return found

    def open(self, id: str) -> Source:
        return self._traced(self._inner.open(id))

    def _traced(self, source: Source) -> Source:
        if source.id not in self._held:
            number = self._origins.note(self._inlet, source.id, source)
            stream = self._origins.streams[self._inlet.stream].name
            late = self._origins.late.get((stream, source.id), np.empty(0, np.int64))
            made = _TracedSource(source, number, self._time, self._low_us, late)
            self._held[source.id] = cast(Source, made)
        return self._held[source.id]


class _TracedSource(_Outer):
    def __init__(self, inner: Source, number: int, time: str, low_us: int, late: Int64s) -> None:
        super().__init__(inner)
        self._number, self._time, self._low_us, self._late = number, time, low_us, late

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        times, valid = self._inner.times(start, stop)
        late = self._late_in(start, stop)
        if len(late):
            valid = valid.copy()
            valid[late - start] = False
        return times, valid

    def absent(self, start: int, stop: int) -> int:
        return int(self._inner.absent(start, stop)) + len(self._late_in(start, stop))

    def _late_in(self, start: int, stop: int) -> Int64s:
        low, high = np.searchsorted(self._late, (start, stop))
        return self._late[low:high]

    def reader(self, start: int, stop: int) -> Reader:
        inner, late = self._inner.reader(start, stop), self._late_in(start, stop)
        if len(late):
            inner = SelectedReader(inner, start, stop, late)
        return _TracedReader(inner, start, stop, self._number, self._time, self._low_us)


@dataclass(frozen=True)
class _TracedReader(OuterReader):
    number: int
    time: str
    low_us: int

    def read(self, columns: Sequence[str]) -> Rows:
        if WHY not in columns:
            return self.inner.read(columns)
        rows = self.inner.read(list(dict.fromkeys([*(c for c in columns if c != WHY), self.time])))
        times, valid = event_times(rows.table.column(self.time))
        places = pc.cast(pa.array(rows.seq), pa.string())
        ids = pc.binary_join_element_wise(str(self.number), places, _ID)
        early = pa.array(np.asarray(times < self.low_us) | ~valid)
        table = rows.table.append_column(WHY, pc.if_else(early, pa.scalar(None, pa.string()), ids))
        return replace(rows, table=table.select(list(columns)))
