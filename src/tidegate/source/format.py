"""The base classes of file formats: `FileFormat` looks at a file, `FileSource` reads it.

`FORMATS` in `registry` has a line for each ending. A format that keeps rows in groups derives from
`columnar.ColumnarFormat`, one of lines from `text.format.TextFormat`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple

import pyarrow as pa

from tidegate import disk
from tidegate.arrival import Together
from tidegate.clock import Clock
from tidegate.connector import Bools, Int64s, Reader, Source, joined_times
from tidegate.source.mark import reused
from tidegate.source.partition import Constants, with_constants, without_constants
from tidegate.source.piece import P, PieceIndex
from tidegate.source.subscription import Reading

Version = tuple[int, int]
"""Size and time of change of a file that is not expected to change while it is read."""


@dataclass(frozen=True)
class Look:
    """What the connector says of a file that a format is to look at.

    `where` is for messages. A file that `grows` may end within a line. Text is read in blocks of
    `block_bytes`, and the types of its columns come from its first `sample_bytes`.
    """

    where: str
    time: str | None
    reading: Reading
    grows: bool
    block_bytes: int
    sample_bytes: int


@dataclass(frozen=True)
class FileUse:
    """A file that a stream reads: the stream's columns, those that folders give, the time column.

    Where it `grows`, rows may be added while it is read.
    """

    path: str
    schema: pa.Schema
    time: str | None
    constants: Constants = ()
    grows: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts(ABC):
    """What is kept of a file that is not open: a few numbers, whatever it holds.

    `extent`, `digest` and `low_us` are what `ListedSource` has of it; `may_grow` says that rows can
    be added to such a file.
    """

    size_bytes: int
    modified_ns: int
    inode: int
    digest: int
    extent: int
    low_us: int
    may_grow: bool

    @property
    def version(self) -> Version:
        return self.size_bytes, self.modified_ns

    @property
    def status(self) -> disk.Status:
        return disk.Status(self.size_bytes, self.modified_ns, self.inode, False)

    @abstractmethod
    def open(self, file: FileUse) -> FileSource[Any]:
        """The file as it was when it was looked at; where it `grows`, as it is and will be."""


class NewFile(NamedTuple):
    """A file that was looked at and not listed yet; `first` is the text of its first row."""

    path: str
    facts: FileFacts
    first: bytes


@dataclass(frozen=True)
class FileProbe:
    """A file that was looked at; types are null where nothing is known of a column's values.

    `first` is the text of its first row and `rows` how many were seen, where types are inferred.
    """

    path: str
    schema: pa.Schema
    facts: FileFacts
    first: bytes = b""
    rows: int = 0


class FileFormat(ABC):
    """How files of one format are read; without state, so that tasks are sent its name only.

    The connector of files calls `edge` and `probe` for each file that it finds, `lows_us` for those
    that it lists, and `open` of a file's facts when its turn has come.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """Its name for people."""

    options: ClassVar[tuple[str, ...]] = ()
    """Those of `subscription.OPTIONS` that it takes."""

    text: ClassVar[bool] = False
    """Whether it is text: types are inferred, and files may be compressed as a whole."""

    loose: ClassVar[bool] = False
    """Whether a file may be without some of the columns."""

    nested: ClassVar[bool] = True
    """Whether a value may be a struct or a list."""

    needs: ClassVar[str] = "a row must be there to tell the columns from"
    """What a file must have that is the first one of its folder."""

    @abstractmethod
    def probe(self, path: str, look: Look) -> FileProbe | None:
        """Look at a file; None where it has no rows to show. SourceError where it is damaged."""

    @abstractmethod
    def edge(self, path: str, sample_bytes: int) -> tuple[int, int]:
        """Which bytes `probe` reads first: an offset and a length, -1 for all behind it."""

    def lows_us(self, arrived: Sequence[NewFile], time: pa.Field) -> list[int]:
        """By file a time that its first row is not below, as `ListedSource` has it."""
        return [file.facts.low_us for file in arrived]

    def first_fault(self, probe: FileProbe, schema: pa.Schema, sample_bytes: int) -> str | None:
        """Where the first row is that is not of a schema, and why; None where it is not found."""
        return None


class FileSource(Source, Generic[P]):
    """A file on the driver, read by pieces; the times of the last few of them are kept.

    A format has `piece_times` and `piece_reader`, and adds to `pieces` what `extend` finds.
    """

    pieced = True
    kept_pieces = 1
    """Of how many pieces the times are kept."""

    def __init__(self, file: FileUse, pieces: PieceIndex[P]) -> None:
        self.id = self.path = file.path
        self.schema, self.grows = file.schema, file.grows
        self._time, self._constants = file.time, file.constants
        self._pieces = pieces
        self._times: OrderedDict[int, tuple[Int64s, Bools]] = OrderedDict()

    @abstractmethod
    def piece_times(self, piece: P, only_time: pa.Schema) -> tuple[Int64s, Bools]:
        """Decode the event times of a piece, and which of them are valid."""

    @abstractmethod
    def piece_reader(
        self, path: str, schema: pa.Schema, start: int, stop: int, pieces: tuple[P, ...]
    ) -> Reader:
        """What a task reads the positions with; the schema has the columns of the file itself."""

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        parts = []
        for piece in self._pieces.within(start, stop):
            numbers, valid = self._kept_times(piece)
            low, high = max(start - piece.first, 0), min(stop - piece.first, piece.rows)
            parts.append((numbers[low:high], valid[low:high]))
        return joined_times(parts)

    def reader(self, start: int, stop: int) -> Reader:
        path = disk.absolute(self.path)  # a worker may have been started elsewhere
        own = without_constants(self.schema, self._constants)
        pieces = self._pieces.within(start, stop)
        reader = self.piece_reader(path, own, start, stop, pieces)
        return with_constants(reader, self.schema, self._constants)

    def place_of(self, position: int) -> dict[str, Any]:
        return {"file": str(self.path), "row": position}

    def breaks(self, start: int, stop: int) -> list[int]:
        return [p.first for p in self._pieces.within(start, stop) if p.first > start]

    def piece_end(self, position: int) -> int:
        piece = self._pieces.at(position)
        return piece.first + piece.rows

    def follow_arrivals(self, came_at: float, clock: Clock) -> None:
        """Tell when rows came: those there are now at a time, others when they are noticed."""
        self.arrivals = Together(came_at)

    def rows_within(self, extent: int, edge: int) -> int:
        """How many rows it had when it was of this extent; `edge` is the digest it had then.

        Refuses a file that is another one now: by itself, any that has another extent.
        """
        raise reused(self.path, "another file")

    def finish(self) -> FileFacts:
        """Take a file that grows as it is now, and say what to keep of it; called where `grows`."""
        raise NotImplementedError(f"{self.path} does not grow")

    def take_as_of_now(self) -> None:
        """Let it be as long as it was when it was last looked at; it has not ended for all that."""

    def is_at(self, path: str, inode: int) -> bool:
        """Whether the file that was read is at a path, where something of this inode is."""
        return False

    def _kept_times(self, piece: P) -> tuple[Int64s, Bools]:
        if piece.first not in self._times:
            assert self._time is not None, f"{self.id} was opened without a time column"
            only_time = pa.schema([self.schema.field(self._time)])
            self._times[piece.first] = self.piece_times(piece, only_time)
            while len(self._times) > self.kept_pieces:
                self._times.popitem(last=False)
        return self._times[piece.first]
