"""Finds the pieces of a file by position, and caches decoded pieces in the process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from tidegate.memory import MEMORY

PIECES = MEMORY.cache(1 / 4, lambda piece: int(piece.nbytes), most_entries=8)
"""The decoded pieces of this process, shared by the readers of all formats. Few entries suffice:
input streams by, and a piece is read again only by the next batches."""


class FilePiece(Protocol):
    """Rows of a file that are decoded together: the positions [first, first + rows)."""

    @property
    def first(self) -> int: ...

    @property
    def rows(self) -> int: ...


P = TypeVar("P", bound=FilePiece)


class PieceIndex(Generic[P]):
    """The known pieces of one file in order, found by position in O(log pieces)."""

    def __init__(self, pieces: Iterable[P] = ()) -> None:
        self.all: list[P] = []
        self._firsts: list[int] = []
        self.rows = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: P) -> None:
        self.all.append(piece)
        self._firsts.append(piece.first)
        self.rows = piece.first + piece.rows

    def within(self, start: int, stop: int) -> tuple[P, ...]:
        """The pieces that hold the positions [start, stop), which must be known."""
        if start >= stop:
            return ()
        low = bisect_right(self._firsts, start) - 1
        high = bisect_right(self._firsts, stop - 1)
        return tuple(self.all[low:high])

    def at(self, position: int) -> P:
        """The piece that holds a known position."""
        return self.all[bisect_right(self._firsts, position) - 1]
