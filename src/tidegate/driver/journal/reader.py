"""Reads the batches of a journal again and again, and of its files only what is new."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right

from tidegate.driver.journal.files import batch_files, first_batch, line_batch, read_whole
from tidegate.state.files import Files

_HELD = 2
"""So many files are held: the newest, and one that somebody pages through."""


class JournalReader:
    """The batches that runs have left in a checkpoint, as lines; any thread may ask.

    A file is read again when it has changed, as the newest does while a run goes on; on an object
    store, where that is not known, whenever it is asked for. Holds the lines of two files.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._held: dict[str, tuple[tuple[int, ...], list[bytes]]] = {}
        self._lock = threading.Lock()

    def newest(self) -> int:
        """The number of the newest batch; -1 where there is none."""
        names = batch_files(self._files)
        lines = self._lines(names[-1]) if names else []
        return line_batch(lines[-1]) if lines else -1

    def after(self, batch: int, most: int) -> list[bytes]:
        """The first `most` batches after one, oldest first; other files are not read."""
        names = batch_files(self._files)
        begin = max((i for i, n in enumerate(names) if first_batch(n) <= batch + 1), default=0)
        found: list[bytes] = []
        for place, name in enumerate(names[begin:], begin + 1):
            # A run that goes on after a crash may have written some of these batches again.
            until = first_batch(names[place]) if place < len(names) else math.inf
            lines = self._lines(name)
            first = bisect_right(lines, batch, key=line_batch)
            found += lines[first : bisect_left(lines, until, key=line_batch)]
            if len(found) >= most:
                break
        return found[:most]

    def _lines(self, name: str) -> list[bytes]:
        with self._lock:
            try:
                stamp = self._files.stamp(name)  # before reading: a later change is seen next time
            except FileNotFoundError:
                return []
            held = self._held.pop(name, None)
            if held is None or not stamp or held[0] != stamp:
                held = stamp, read_whole(self._files, name).splitlines()
            self._held[name] = held
            while len(self._held) > _HELD:
                del self._held[next(iter(self._held))]
            return held[1]
