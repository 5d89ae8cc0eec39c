"""Reads files that hold rows in groups of columns: row groups in Parquet, stripes in ORC.

A format reads the footer and decodes one group; everything else is here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Bools, Int64s, Reader, Rows, check_columns
from tidegate.errors import GateError, RunError, SourceError
from tidegate.remote.reason import is_of_server
from tidegate.schema import cast_table, event_times, normal_type
from tidegate.source.format import (
    FileFacts,
    FileFormat,
    FileProbe,
    FileSource,
    FileUse,
    Look,
    Version,
)
from tidegate.source.mark import EDGE_BYTES, FileMark, changed_since, digest, status_of, unreadable
from tidegate.source.piece import PIECES, PieceIndex
from tidegate.source.shape import check_distinct, check_fits, spelling
from tidegate.storage import disk


@dataclass(frozen=True)
class Group:
    """One group of rows: its number in the file, and the positions [first, first + rows).

    No row is older than `low_us`; MIN_US where that is not known.
    """

    number: int
    first: int
    rows: int
    low_us: int = MIN_US


class Footer(NamedTuple):
    """The footer of a file: its columns, and for each group the rows and the least event time.

    `end` holds the last EDGE_BYTES of the file, or more where the footer is longer and the format
    says how long. Its digest tells the file from another.
    """

    end: bytes
    schema: pa.Schema
    rows: Sequence[int]
    lows_us: Sequence[int]


class ColumnarFormat(FileFormat):
    """A format of groups of rows, whose footer says how many there are in each."""

    @abstractmethod
    def read_footer(self, path: str, size: int, time: str | None) -> Footer:
        """Read the end of a file of `size` bytes; may raise what Arrow or the system raises."""

    @abstractmethod
    def read_group(
        self, path: str, number: int, choose: Callable[[Sequence[str]], list[str]]
    ) -> pa.Table:
        """Decode one group: the columns that `choose` picks from those in the file."""

    def edge(self, path: str, sample_bytes: int) -> tuple[int, int]:
        return max(disk.seen(path).bytes - EDGE_BYTES, 0), -1

    def probe(self, path: str, look: Look) -> FileProbe:
        """As in `FileFormat`; the type of a column that holds only nulls is null."""
        facts, _, schema = self.facts(path, look.where, look.time)
        declared = look.reading.schema
        if declared is not None:
            check_fits(declared, schema, look.where)
        return FileProbe(path, schema if declared is None else declared, facts)

    def facts(
        self, path: str, where: str, time: str | None
    ) -> tuple[ColumnarFacts, tuple[Group, ...], pa.Schema]:
        """Read the footer: the facts of the file, its groups that have rows, and its columns."""
        try:
            status = disk.seen(path)
            end, raw, sizes, lows_us = self.read_footer(path, status.bytes, time)
        except (pa.ArrowException, OSError) as error:
            raise self._failed(path, where, error) from error
        check_distinct(raw.names, where)
        groups, first = [], 0
        for number, (rows, low_us) in enumerate(zip(sizes, lows_us, strict=True)):
            if rows:
                groups.append(Group(number, first, rows, low_us))
            first += rows
        types = [f.type if pa.types.is_null(f.type) else normal_type(f.type) for f in raw]
        schema = pa.schema(list(zip(raw.names, types, strict=True)))
        group = groups[0].number if len(groups) == 1 else -1
        low_us = groups[0].low_us if groups else MAX_US
        facts = ColumnarFacts(*status[:2], 0, digest(end), first, low_us, False, group, self)
        return facts, tuple(groups), schema

    def decode(
        self, path: str, version: Version, number: int, asked: pa.Schema, time: str | None
    ) -> pa.Table:
        """Columns of one group in normalised types; refuses a file that has changed."""
        names: dict[str, str] = {}

        def choose(there: Sequence[str]) -> list[str]:
            names.update({spelling(n, there) or n: n for n in asked.names})
            return list(names)

        try:
            table = self.read_group(path, number, choose)
            table = table.rename_columns([names.get(n, n) for n in table.column_names])
            # After the read: if the file still has this version now, then so have the bytes read.
            _check_version(path, version)
            return cast_table(table, asked, path, time)
        except (pa.ArrowException, OSError) as error:
            _check_version(path, version)
            raise self._failed(path, path, error) from error

    def _failed(self, path: str, where: str, error: Exception) -> SourceError | RunError:
        """The error for a file that is damaged, of another format, or out of reach."""
        if disk.is_remote(path) and isinstance(error, OSError) and is_of_server(error):
            return unreadable(path, error)  # the server failed; the file may be whole
        return SourceError(
            where,
            f"the file must be a whole, readable {self.title} file",
            str(error).splitlines()[0] if str(error) else type(error).__name__,
            "Write it again, or leave it out.",
        )


@dataclass(frozen=True, slots=True)
class ColumnarFacts(FileFacts):
    """The facts of a file of groups; its extent is the number of its rows.

    `group` is the number of its only group with rows, -1 where there are none or several.
    """

    group: int
    format: ColumnarFormat

    def open(self, file: FileUse) -> ColumnarSource:
        """Refuses a file that has changed since `probe`. Reads the footer where groups are many."""
        groups: tuple[Group, ...] = (Group(self.group, 0, self.extent, self.low_us),)
        if self.group < 0:
            now, groups, _ = self.format.facts(file.path, file.path, file.time)
            if now.version != self.version:
                raise _changed(file.path)
        return ColumnarSource(file, self, groups)


class ColumnarSource(FileSource[Group]):
    """A file of groups on the driver: all positions are known from its footer."""

    def __init__(self, file: FileUse, facts: ColumnarFacts, groups: Sequence[Group]) -> None:
        super().__init__(file, PieceIndex(groups))
        self._facts = facts
        self._version = facts.version
        self._rows = facts.extent

    def extend(self, rows: int) -> int:
        return self._rows

    def ended(self) -> bool:
        return True

    def extent(self, position: int) -> tuple[int, int, str]:
        return position, self._rows, "rows"

    def untaken(self, position: int) -> tuple[int, str]:
        return self._rows - position, "rows"

    def low_us(self, position: int) -> int:
        return self._pieces.at(position).low_us

    def mark(self, position: int) -> dict[str, int]:
        size_bytes, modified_ns = self._version
        digest = self._facts.digest
        return FileMark(size_bytes, self._rows, digest, size_bytes, modified_ns, 0).saved()

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        """Costs nothing: the end of the file has been read already."""
        if self.holds(saved):
            return
        mark, facts = FileMark.of(saved), self._facts
        if (self._rows, facts.size_bytes) != (mark.rows, mark.size_bytes):
            was = f"where {mark.rows} were in {mark.size_bytes}"
            got = f"{self._rows} rows in {facts.size_bytes} bytes {was}"
        else:
            got = f"another content in {facts.size_bytes} bytes"
        raise changed_since(self.path, position, got)

    def holds(self, saved: Mapping[str, Any]) -> bool:
        mark = FileMark.of(saved)
        return (self._rows, self._facts.digest) == (mark.rows, mark.digest)

    def piece_times(self, piece: Group, only_time: pa.Schema) -> tuple[Int64s, Bools]:
        """Refuses wrong statistics: because of them, later rows of other files may be consumed."""
        decode = self._facts.format.decode
        table = decode(self.path, self._version, piece.number, only_time, self._time)
        times = event_times(table.column(0))
        if piece.low_us != MIN_US and (found := int(times[0].min())) < piece.low_us:
            raise SourceError(
                self.path,
                f"no time in row group {piece.number} must be below its statistics' "
                f"{piece.low_us} us",
                f"{found} us",
                "Write it again, with statistics that are true or with none.",
            )
        return times

    def piece_reader(
        self, path: str, schema: pa.Schema, start: int, stop: int, pieces: tuple[Group, ...]
    ) -> Reader:
        format_ = self._facts.format
        return ColumnarReader(path, self._version, schema, self._time, start, stop, pieces, format_)


@dataclass(frozen=True)
class ColumnarReader(Reader):
    """Reads positions [start, stop) of a file of groups in a task; caches decoded groups."""

    path: str
    version: Version
    schema: pa.Schema
    time: str | None
    start: int
    stop: int
    groups: tuple[Group, ...]
    format: ColumnarFormat

    @property
    def input_file(self) -> str:
        return self.path

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.schema, self.path)
        asked = pa.schema([self.schema.field(c) for c in columns])
        pieces = []
        for group in self.groups:
            key = (self.path, self.version, group.number, tuple(columns), str(asked), self.time)
            table = PIECES.get(key, partial(self._decode, group, asked))
            low = max(self.start, group.first)
            high = min(self.stop, group.first + group.rows)
            pieces.append(Rows.of_range(table.slice(low - group.first, high - low), low, high))
        return Rows.joined(pieces, asked)

    def _decode(self, group: Group, asked: pa.Schema) -> pa.Table:
        return self.format.decode(self.path, self.version, group.number, asked, self.time)


def _check_version(path: str, version: Version) -> None:
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
