"""Interrupts long work between two of its pieces, if the run was aborted or memory is used up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.errors import BrokenOffError
from tidegate.memory_limit import LIMIT

LOOK_ROWS = 262_144
"""Memory is checked once per this many rows: a check costs as much as some thousand rows."""

_work = threading.local()


@contextmanager
def breakable(aborted: threading.Event) -> Iterator[None]:
    """Lets the event interrupt this thread's work between its pieces."""
    before = getattr(_work, "aborted", None)
    _work.aborted = aborted
    try:
        yield
    finally:
        _work.aborted = before


def between_pieces(rows: int = LOOK_ROWS) -> None:
    """Raises BrokenOffError if the run was aborted, MemoryError at the memory limit.

    `rows` is the size of a piece. Safe only where an interruption loses nothing, which holds inside
    a batch: what it has not committed does not count.
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
