"""A folder in memory: files of pieces with statistics, which count how often they are decoded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from tests.gate.unread import UnreadSource
from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Connector, ListedSource
from tidegate.errors import SourceError

Values = list[int | None]


@dataclass(frozen=True)
class File:
    """A file's times, how many rows its pieces have, and which of them have statistics."""

    values: Values
    pieces: tuple[int, ...]
    stated: tuple[bool, ...]

    def bounds(self) -> list[int]:
        return list(accumulate(self.pieces, initial=0))

    def low_us(self, piece: int) -> int:
        start, stop = list(pairwise(self.bounds()))[piece]
        times = [v for v in self.values[start:stop] if v is not None]
        whole = len(times) == stop - start and self.stated[piece]
        return min(times) if whole else MIN_US


@dataclass
class PiecedSource(UnreadSource):
    """An open file; what is decoded together is counted."""

    id: str
    file: File
    decoded: Counter[str] = field(default_factory=Counter)
    broken: str = ""
    pieced = True

    def extend(self, rows: int) -> int:
        return len(self.file.values)

    def ended(self) -> bool:
        return True

    def times(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        for low, high in pairwise(self.file.bounds()):
            if low < stop and start < high:
                self.decoded[name := f"{self.id}[{low}]"] += 1
                if name == self.broken:
                    raise SourceError(name, "must be whole", "half of it", "Write it again.")
        part = self.file.values[start:stop]
        array = np.array([0 if v is None else v for v in part], np.int64)
        return array, np.array([v is not None for v in part], np.bool_)

    def piece_end(self, position: int) -> int:
        return next(b for b in self.file.bounds() if b > position)

    def low_us(self, position: int) -> int:
        bounds = self.file.bounds()
        return self.file.low_us(next(i for i, b in enumerate(bounds[1:]) if b > position))


@dataclass
class MemoryFolder(Connector):
    """Files by name in the order of their arrival; those that were let go cannot be opened."""

    files: dict[str, File] = field(default_factory=dict)
    more: bool = False
    several: bool = True
    decoded: Counter[str] = field(default_factory=Counter)
    kept: set[str] = field(default_factory=set)
    broken: str = ""
    """The piece that cannot be decoded."""
    _listed: set[str] = field(default_factory=set)

    def discover(self) -> list[PiecedSource]:
        raise AssertionError("a folder is not asked for all its sources")

    def live(self) -> bool:
        return self.more

    def unlisted(self) -> list[str]:
        return [name for name in self.files if name not in self._listed]

    def list_new(self) -> list[ListedSource]:
        fresh = self.unlisted()
        self._listed.update(fresh)
        self.kept.update(fresh)
        return [
            ListedSource(n, self._low_us(self.files[n]), len(self.files[n].values)) for n in fresh
        ]

    def open(self, id: str) -> PiecedSource:
        assert id in self.kept, f"{id} was let go"
        return PiecedSource(id, self.files[id], self.decoded, self.broken)

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[PiecedSource, int]:
        return self.open(id), extent

    def let_go(self, id: str) -> tuple[int, int] | None:
        self.kept.remove(id)
        return None

    def has(self, id: str) -> bool:
        return id in self.files

    def again(self) -> MemoryFolder:
        """The same folder in a new process."""
        names = sorted(self.files)
        return MemoryFolder({n: self.files[n] for n in names}, self.more, decoded=self.decoded)

    @staticmethod
    def _low_us(file: File) -> int:
        return file.low_us(0) if file.values else MAX_US
