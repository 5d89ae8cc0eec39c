"""Ends long work between two of its pieces: when its run was aborted, or memory is used up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.errors import BrokenOffError
from tidegate.memory_limit import LIMIT

LOOK_ROWS = 262_144
"""Memory is looked at once for so many rows: a look takes as long as some thousand."""

_work = threading.local()


@contextmanager
def breakable(aborted: threading.Event) -> Iterator[None]:
    """Let the work of this thread be broken off between its pieces when the event is set."""
    before = getattr(_work, "aborted", None)
    _work.aborted = aborted
    try:
        yield
    finally:
        _work.aborted = before


def between_pieces(rows: int = LOOK_ROWS) -> None:
    """Go on, or raise BrokenOffError where the run was aborted, MemoryError at the limit.

    `rows` is how many a piece has. To be called where nothing is lost by it: what a batch has not
    committed does not count.
    """
    aborted: threading.Event | None = getattr(_work, "aborted", None)
    if aborted is not None and aborted.is_set():
        raise BrokenOffError(
            "the batch",
            "must not be cancelled",
            "an abort",
            "Nothing of it was committed; run again to continue.",
        )
    unseen: int = getattr(_work, "unseen_rows", 0) + rows
    if unseen >= LOOK_ROWS:
        unseen = 0
        LIMIT.check()
    _work.unseen_rows = unseen
