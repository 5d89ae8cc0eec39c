"""Parquet and ORC files as sources, between row groups, which are stripes in ORC, and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate import disk
from tidegate.arrival import ArrivalTimes
from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Bools, Int64s, Reader, Rows, Source, check_columns, joined_times
from tidegate.errors import GateError, RunError, SourceError
from tidegate.remote.reason import is_of_server
from tidegate.schema import cast_table, event_times, normal_type
from tidegate.source.cache import PIECES
from tidegate.source.declared import spelling
from tidegate.source.mark import EDGE_BYTES, Mark, changed_since, digest, status_of
from tidegate.source.mark import unreadable as out_of_reach
from tidegate.source.partition import Constants, with_constants, without_constants
from tidegate.source.shape import check_distinct
from tidegate.source.statistics import least_times

Version = tuple[int, int]
"""Size and time of change of a file that must not change while it is read."""

_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Group:
    """One row group: its number in the file and the positions [first, first + rows) it holds."""

    number: int
    first: int
    rows: int


@dataclass(frozen=True)
class ParquetReader:
    """Positions [start, stop) of a Parquet or ORC file, read in a task; decoded groups are kept."""

    path: str
    version: Version
    schema: pa.Schema
    time: str | None
    start: int
    stop: int
    groups: tuple[Group, ...]
    format: str = "parquet"

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.path)
        asked = pa.schema([self.schema.field(c) for c in columns])
        pieces = []
        for group in self.groups:
            key = (self.path, self.version, group.number, tuple(columns), str(asked), self.time)
            table = PIECES.get(key, partial(self._decode, group, asked))
            low = max(self.start, group.first)
            high = min(self.stop, group.first + group.rows)
            seq = np.arange(low, high, dtype=np.int64)
            pieces.append(Rows(table.slice(low - group.first, high - low), seq))
        return Rows.joined(pieces, asked)

    def _decode(self, group: Group, asked: pa.Schema) -> pa.Table:
        decode = decoder(self.format)
        return decode(self.path, self.version, group.number, asked, self.time)


class ParquetSource(Source):
    """A Parquet file on the driver: all positions are known from its footer.

    `lows_us` has, by row group, a time that none of its rows is below; MIN_US where that is not
    known. Kept of the rows are the times of the row group that was decoded last.
    """

    pieced = True

    def __init__(
        self,
        id: str,
        path: str,
        version: Version,
        groups: tuple[Group, ...],
        lows_us: Sequence[int],
        schema: pa.Schema,
        time: str | None,
        digest: int,
        format_: str = "parquet",
        constants: Constants = (),
    ) -> None:
        self.id = id
        self.path = path
        self.schema = schema
        self._version = version
        self._groups = groups
        self._lows_us = dict(zip((g.number for g in groups), lows_us, strict=True))
        self._firsts = np.array([g.first for g in groups], np.int64)
        self._rows = sum(g.rows for g in groups)
        self._time = time
        self._digest = digest
        self._format = format_
        self._constants = constants
        self._decoded: tuple[int, tuple[Int64s, Bools]] | None = None
        self.arrivals: ArrivalTimes | None = None
        """When it came to a folder that is followed; None elsewhere."""

    def extend(self, rows: int) -> int:
        return self._rows

    def ended(self) -> bool:
        return True

    def extent(self, position: int) -> tuple[int, int, str]:
        """How much lies before a position, and how much there is."""
        return position, self._rows, "rows"

    def untaken(self, position: int) -> tuple[int, str]:
        """How many rows there are from a position on."""
        return self._rows - position, "rows"

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        parts = []
        for group in self._within(start, stop):
            numbers, valid = self._group_times(group)
            low, high = max(start - group.first, 0), min(stop - group.first, group.rows)
            parts.append((numbers[low:high], valid[low:high]))
        return joined_times(parts)

    def reader(self, start: int, stop: int) -> Reader:
        groups = self._within(start, stop)
        path = disk.absolute(self.path)  # a worker may have been started elsewhere
        own = without_constants(self.schema, self._constants)
        reader = ParquetReader(
            path, self._version, own, self._time, start, stop, groups, self._format
        )
        return with_constants(reader, self.schema, self._constants)

    def breaks(self, start: int, stop: int) -> list[int]:
        return [g.first for g in self._within(start, stop) if g.first > start]

    def piece_end(self, position: int) -> int:
        """Where the row group ends that holds a position."""
        (group,) = self._within(position, position + 1)
        return group.first + group.rows

    def low_us(self, position: int) -> int:
        """A time that no row of the row group at a position is below; MIN_US where not known."""
        (group,) = self._within(position, position + 1)
        return self._lows_us[group.number]

    def mark(self, position: int) -> dict[str, int]:
        """What tells at a restart whether it is the same file."""
        size_bytes, modified_ns = self._version
        return Mark(size_bytes, self._rows, self._digest, size_bytes, modified_ns, 0).saved()

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        """Refuse a file that is not the one of a mark; costs nothing, its end has been read."""
        mark = Mark.of(saved)
        if self.holds(saved):
            return
        size_bytes = self._version[0]
        if (self._rows, size_bytes) != (mark.rows, mark.size_bytes):
            was = f"where {mark.rows} were in {mark.size_bytes}"
            got = f"{self._rows} rows in {size_bytes} bytes {was}"
        else:
            got = f"another content in {size_bytes} bytes"
        raise changed_since(self.path, position, got)

    def holds(self, saved: Mapping[str, Any]) -> bool:
        """Whether it is the file of a mark."""
        mark = Mark.of(saved)
        return (self._rows, self._digest) == (mark.rows, mark.digest)

    def _within(self, start: int, stop: int) -> tuple[Group, ...]:
        if start >= stop:
            return ()
        low = int(np.searchsorted(self._firsts, start, "right")) - 1
        high = int(np.searchsorted(self._firsts, stop - 1, "right"))
        return self._groups[low:high]

    def _group_times(self, group: Group) -> tuple[Int64s, Bools]:
        """The times of one group; the last one decoded is kept."""
        if self._decoded is None or self._decoded[0] != group.number:
            assert self._time is not None, f"{self.id} was opened without a time column"
            asked = pa.schema([self.schema.field(self._time)])
            decode = decoder(self._format)
            table = decode(self.path, self._version, group.number, asked, self._time)
            times = event_times(table.column(0))
            self._check_low(group, times[0])
            self._decoded = group.number, times
        return self._decoded[1]

    def _check_low(self, group: Group, times_us: Int64s) -> None:
        """Refuse wrong statistics: the rows of other files may have been taken because of them."""
        low_us = self._lows_us[group.number]
        if low_us != MIN_US and (found := int(times_us.min())) < low_us:
            raise SourceError(
                self.path,
                f"no time in row group {group.number} must be below its statistics' {low_us} us",
                f"{found} us",
                "Write it again, with statistics that are true or with none.",
            )


class ParquetFacts(NamedTuple):
    """What is kept of a file that is not open: a few numbers, whatever it holds.

    `group` is the number of its only row group with rows; -1 where there are none or several.
    """

    size_bytes: int
    modified_ns: int
    digest: int
    rows: int
    group: int
    low_us: int
    format: str

    @property
    def extent(self) -> int:
        return self.rows

    @property
    def status(self) -> disk.Status:
        return disk.Status(self.size_bytes, self.modified_ns, 0, False)

    def open(
        self, path: str, schema: pa.Schema, time: str | None, constants: Constants = ()
    ) -> ParquetSource:
        """The file as it was when it was looked at; one that has changed since is refused."""
        version = self.size_bytes, self.modified_ns
        groups: tuple[Group, ...] = (Group(self.group, 0, self.rows),)
        lows_us: tuple[int, ...] = (self.low_us,)
        if self.group < 0:
            probe = prober(self.format)(path, path, time)
            if probe.version != version:
                raise _changed(path)
            groups, lows_us = probe.groups, probe.lows_us
        return ParquetSource(
            path,
            path,
            version,
            groups,
            lows_us,
            schema,
            time,
            self.digest,
            self.format,
            constants,
        )


@dataclass(frozen=True)
class ParquetProbe:
    """A file whose footer was read; types are null where a column holds only nulls."""

    path: str
    version: Version
    digest: int
    groups: tuple[Group, ...]
    lows_us: tuple[int, ...]
    schema: pa.Schema
    format: str = "parquet"

    def facts(self) -> ParquetFacts:
        rows = sum(g.rows for g in self.groups)
        group = self.groups[0].number if len(self.groups) == 1 else -1
        low_us = self.lows_us[0] if rows else MAX_US
        return ParquetFacts(*self.version, self.digest, rows, group, low_us, self.format)


def probe_parquet(path: str, where: str, time: str | None) -> ParquetProbe:
    """Read the footer of a file: its columns, the sizes of its row groups, their least times."""
    try:
        status = disk.seen(path)
        end = _read_end(path, status.bytes)
        with pq.ParquetFile(pa.BufferReader(end)) as file:
            raw, metadata = file.schema_arrow, file.metadata
    except (pa.ArrowException, OSError) as error:
        raise failed(path, where, error) from error
    check_distinct(raw.names, where)
    groups, lows_us, first = [], [], 0
    for number, low_us in enumerate(least_times(metadata, time)):
        rows = metadata.row_group(number).num_rows
        if rows:
            groups.append(Group(number, first, rows))
            lows_us.append(low_us)
        first += rows
    types = [f.type if pa.types.is_null(f.type) else normal_type(f.type) for f in raw]
    schema = pa.schema(list(zip(raw.names, types, strict=True)))
    version = status.bytes, status.modified_ns
    return ParquetProbe(path, version, digest(end), tuple(groups), tuple(lows_us), schema)


def parquet_edge(path: str, sample_bytes: int) -> tuple[int, int]:
    """Which bytes of a file are looked at first: an offset and a length, -1 for all behind it."""
    return max(disk.seen(path).bytes - EDGE_BYTES, 0), -1


def prober(format_: str) -> Callable[[str, str, str | None], ParquetProbe]:
    """What reads the footer of a file of a format."""
    if format_ == "parquet":
        return probe_parquet
    from tidegate.source.orc import probe_orc

    return probe_orc


def decoder(format_: str) -> Callable[[str, Version, int, pa.Schema, str | None], pa.Table]:
    """What reads one group of a file of a format."""
    if format_ == "parquet":
        return decode_group
    from tidegate.source.orc import decode_stripe

    return decode_stripe


def _read_end(path: str, size: int) -> bytes:
    """The last bytes of a file, with all of its footer."""
    end = disk.read(path, max(size - EDGE_BYTES, 0))
    needed = int.from_bytes(end[-8:-4], "little") + 8 if end.endswith(_MAGIC) else 0
    return end if needed <= len(end) else disk.read(path, max(size - needed, 0))


def decode_group(
    path: str, version: Version, number: int, asked: pa.Schema, time: str | None
) -> pa.Table:
    """Columns of one row group in normalised types; refuses a file that has changed."""
    try:
        with disk.at(path).open_arrow(path) as raw:
            # Elsewhere the pieces of all columns are asked for side by side.
            file = pq.ParquetFile(
                raw, coerce_int96_timestamp_unit="us", pre_buffer=disk.is_remote(path)
            )
            names = {spelling(n, file.schema_arrow.names) or n: n for n in asked.names}
            table = file.read_row_group(number, columns=list(names), use_threads=False)
            table = table.rename_columns([names.get(n, n) for n in table.column_names])
        check_version(path, version)  # what was read is of this version, if the file still is
        return cast_table(table, asked, path, time)
    except (pa.ArrowException, OSError) as error:
        check_version(path, version)
        raise failed(path, path, error) from error


def check_version(path: str, version: Version) -> None:
    status = status_of(path)
    if status is not None and status[:2] != version:
        raise _changed(path)


def _changed(path: str) -> GateError:
    return GateError(
        path,
        "a file must not change while it is read",
        "a newer version of it",
        "Put the file back as it was and start again; another time of change alone does not "
        "matter then.",
    )


def failed(
    path: str, where: str, error: Exception, title: str = "Parquet"
) -> SourceError | RunError:
    """Who does not answer has not said that the file is damaged."""
    if disk.is_remote(path) and isinstance(error, OSError) and is_of_server(error):
        return out_of_reach(path, error)
    return unreadable(where, error, title)


def unreadable(where: str, error: Exception, title: str = "Parquet") -> SourceError:
    """What to say of a file that is damaged or none of its format at all."""
    return SourceError(
        where,
        f"the file must be a whole, readable {title} file",
        str(error).splitlines()[0] if str(error) else type(error).__name__,
        "Write it again, or leave it out.",
    )
