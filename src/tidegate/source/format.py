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

from tidegate.arrival import Together
from tidegate.clock import Clock
from tidegate.connector import Bools, Int64s, Reader, Source, joined_times
from tidegate.source.mark import reused
from tidegate.source.partition import Constants, with_constants, without_constants
from tidegate.source.piece import P, PieceIndex
from tidegate.source.subscription import Reading
from tidegate.storage import disk

Version = tuple[int, int]
"""Size and time of change of a file that is not expected to change while it is read."""


@dataclass(frozen=True)
class Look:
    """The arguments of `FileFormat.probe`, from the connector.

    Messages name the file `where`. A file that `grows` may end within a line. Text is read in
    blocks of `block_bytes`, and the types of its columns are inferred from its first
    `sample_bytes`.
    """

    where: str
    time: str | None
    reading: Reading
    grows: bool
    block_bytes: int
    sample_bytes: int


@dataclass(frozen=True)
class FileUse:
    """A file as a stream reads it: the stream's columns, constants from folders, the time column.

    Where it `grows`, rows may be added while it is read.
    """

    path: str
    schema: pa.Schema
    time: str | None
    constants: Constants = ()
    grows: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts(ABC):
    """A few numbers about a file that is not open, whatever its size.

    `extent`, `digest` and `low_us` go into its `ListedSource`. `may_grow` says whether rows can be
    added to such a file.
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
        """Open the file as it was at `probe`; where it `grows`, as it is now and will be."""


class NewFile(NamedTuple):
    """A file that was probed and not listed yet; `first` is the text of its first row."""

    path: str
    facts: FileFacts
    first: bytes


@dataclass(frozen=True)
class FileProbe:
    """The result of probing a file. The type of a column in which no value was seen is null.

    Where types are inferred, `first` is the text of the first row, and `rows` is the number of rows
    they are inferred from.
    """

    path: str
    schema: pa.Schema
    facts: FileFacts
    first: bytes = b""
    rows: int = 0


class FileFormat(ABC):
    """How files of one format are read; without state, so that only its name goes to tasks.

    The connector of files calls `edge` and `probe` for each file that it finds, `lows_us` for those
    that it lists, and `FileFacts.open` once it is the file's turn.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """Its name in messages."""

    options: ClassVar[tuple[str, ...]] = ()
    """The names in `subscription.OPTIONS` that it takes."""

    text: ClassVar[bool] = False
    """Whether it is text: then types are inferred, and files may be compressed as a whole."""

    loose: ClassVar[bool] = False
    """Whether a file may lack some of the columns."""

    nested: ClassVar[bool] = True
    """Whether a value may be a struct or a list."""

    needs: ClassVar[str] = "a row must be there to tell the columns from"
    """What the first file of a folder must have, for messages."""

    @abstractmethod
    def probe(self, path: str, look: Look) -> FileProbe | None:
        """Read the columns and facts of a file; None where it has no rows yet.

        Raises SourceError where the file is damaged.
        """

    @abstractmethod
    def edge(self, path: str, sample_bytes: int) -> tuple[int, int]:
        """The bytes that `probe` reads first: offset and length, -1 for up to the end."""

    def lows_us(self, arrived: Sequence[NewFile], time: pa.Field) -> list[int]:
        """For each file a lower bound of the time of its first row, for its `ListedSource`."""
        return [file.facts.low_us for file in arrived]

    def first_fault(self, probe: FileProbe, schema: pa.Schema, sample_bytes: int) -> str | None:
        """The place of the first row that does not fit a schema, and why; None where none shows."""
        return None


class FileSource(Source, Generic[P]):
    """A file on the driver, read by pieces. Caches the times of the last `kept_pieces`.

    A format implements `piece_times` and `piece_reader`, and `extend`, which adds what it finds to
    `pieces`.
    """

    pieced = True
    kept_pieces = 1

    def __init__(self, file: FileUse, pieces: PieceIndex[P]) -> None:
        self.id = self.path = file.path
        self.schema, self.grows = file.schema, file.grows
        self._time, self._constants = file.time, file.constants
        self._pieces = pieces
        self._times: OrderedDict[int, tuple[Int64s, Bools]] = OrderedDict()

    @abstractmethod
    def piece_times(self, piece: P, only_time: pa.Schema) -> tuple[Int64s, Bools]:
        """Decode the event times of a piece: int64 microseconds, and which of them are valid."""

    @abstractmethod
    def piece_reader(
        self, path: str, schema: pa.Schema, start: int, stop: int, pieces: tuple[P, ...]
    ) -> Reader:
        """The reader for tasks; `schema` has only the columns that are in the file itself."""

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        parts = []
        for piece in self._pieces.within(start, stop):
            numbers, valid = self._kept_times(piece)
            low, high = max(start - piece.first, 0), min(stop - piece.first, piece.rows)
            parts.append((numbers[low:high], valid[low:high]))
        return joined_times(parts)

    def reader(self, start: int, stop: int) -> Reader:
        path = disk.absolute(self.path)  # a worker may have another working folder
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
        """Record arrivals: present rows came at `came_at`, later ones when they are noticed."""
        self.arrivals = Together(came_at)

    def rows_within(self, extent: int, edge: int) -> int:
        """How many rows the file had at this extent; `edge` is the digest it had then.

        Refuses a file that is another one now. The default refuses every file, because only files
        that can grow keep their identity at another extent.
        """
        raise reused(self.path, "another file")

    def finish(self) -> FileFacts:
        """Stop the growth of the file here; its facts. Called only where it `grows`."""
        raise NotImplementedError(f"{self.path} does not grow")

    def take_as_of_now(self) -> None:
        """Ignore rows that come after the last look. The file has not ended for all that."""

    def is_at(self, path: str, inode: int) -> bool:
        """Whether the file that was read is now at a path, where a file of this inode is."""
        return False

    def _kept_times(self, piece: P) -> tuple[Int64s, Bools]:
        if piece.first not in self._times:
            assert self._time is not None, f"{self.id} was opened without a time column"
            only_time = pa.schema([self.schema.field(self._time)])
            self._times[piece.first] = self.piece_times(piece, only_time)
            while len(self._times) > self.kept_pieces:
                self._times.popitem(last=False)
        return self._times[piece.first]
