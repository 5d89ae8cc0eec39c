"""Decoded pieces of files kept per process, between readers of small batches and big pieces."""

from __future__ import annotations

from typing import Protocol

from tidegate.memory import MEMORY


class Sized(Protocol):
    """Something that knows how much memory it holds."""

    @property
    def nbytes(self) -> int: ...


def _nbytes(piece: Sized) -> int:
    return int(piece.nbytes)


PIECES = MEMORY.cache(1 / 8, _nbytes, most_entries=8)
"""The pieces of this process, shared by the readers of all formats; few, as input streams by."""
