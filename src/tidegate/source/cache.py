"""Decoded pieces of files kept per process, between readers of small batches and big pieces."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast


class Sized(Protocol):
    """Something that knows how much memory it holds."""

    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class PieceCache:
    """The most recently used pieces, bounded by number and bytes; safe to use from threads.

    The newest piece is always kept, whatever its size. Two threads that want the same piece at
    the same time decode it once: the second waits for the first. Nothing is kept of a load that
    fails. Pieces are shared, so callers must not change them.
    """

    def __init__(self, limit_entries: int = 8, limit_bytes: int = 256 * 2**20) -> None:
        self.limit_entries = limit_entries
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.loads = 0
        self._pieces: OrderedDict[Hashable, Sized] = OrderedDict()
        self._loading: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """The piece of this key, loaded where it is not held."""
        with self._lock:
            if key in self._pieces:
                self._pieces.move_to_end(key)
                return cast(T, self._pieces[key])
            turn = self._loading.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._pieces:
                    return cast(T, self._pieces[key])
            try:
                piece = load()
                self._keep(key, piece)
            finally:
                with self._lock:
                    self._loading.pop(key, None)
        return piece

    def clear(self) -> None:
        with self._lock:
            self._pieces.clear()
            self.bytes = 0

    def _keep(self, key: Hashable, piece: Sized) -> None:
        with self._lock:
            self.loads += 1
            replaced = self._pieces.pop(key, None)
            self.bytes += piece.nbytes - (replaced.nbytes if replaced is not None else 0)
            self._pieces[key] = piece
            while len(self._pieces) > 1 and (
                len(self._pieces) > self.limit_entries or self.bytes > self.limit_bytes
            ):
                _, oldest = self._pieces.popitem(last=False)
                self.bytes -= oldest.nbytes


PIECES = PieceCache()
"""The pieces of this process, shared by the readers of all formats."""
