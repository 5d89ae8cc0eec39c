"""What must be on the disk before a batch counts: gathered while it is written, synced together.

Whoever is about to commit gathers, in its thread, what writers would sync; each file and folder is
then synced once, before the one step that makes it all count. On a disk where a sync takes some
milliseconds one after the other would cost a small batch more than all its work; side by side they
cost little more than one of them. Where nobody gathers, writers sync at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

from tidegate import disk, schedule

SLOW_S = 0.002
"""A sync that takes so long is worth threads for the others."""

_AT_ONCE = 4
"""So many threads sync; the disk has one queue, and more of them gain nothing."""


class Due:
    """Files and folders that are to be synced, each once; of one batch, and let go with it."""

    def __init__(self) -> None:
        self._files: dict[str, None] = {}
        self._folders: dict[str, None] = {}
        self._begun: list[Future[None]] = []
        self.waited_s: float | None = None
        """How long `sync` has taken, all calls together; None where there was nothing to sync."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self._files)

    def add_file(self, path: str | os.PathLike[str]) -> None:
        """The bytes of a file."""
        self._files[os.path.abspath(path)] = None

    def add_folder(self, path: str | os.PathLike[str]) -> None:
        """The names in a folder."""
        self._folders[os.path.abspath(path)] = None

    def add_names(self, paths: Iterable[str]) -> None:
        """Files that a task has written, bytes and names."""
        for path in paths:
            self.add_file(path)
            self.add_folder(os.path.dirname(path) or ".")

    def move(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """A file has another name now."""
        if self._files.pop(os.path.abspath(source), self) is None:
            self.add_file(target)

    def begin(self) -> None:
        """Start to sync what is there so far beside what is still to be written; `sync` waits.

        None of it may get another name meanwhile.
        """
        steps = self._taken()
        if steps:
            self._begun += _beside(partial(_synced, steps))

    def sync(self) -> None:
        """Take all of it to the disk; an OSError of any of it is raised."""
        begun, self._begun = self._begun, []
        steps, clock = self._taken(), schedule.current().clock
        began = clock.now()
        try:
            _synced(steps)
        finally:
            schedule.wait(begun)
            if steps or begun:
                self.waited_s = (self.waited_s or 0.0) + clock.now() - began
        for done in begun:
            done.result()

    def _taken(self) -> list[Callable[[], None]]:
        at = disk.current()
        steps: list[Callable[[], None]] = [partial(at.sync_file, path) for path in self._files]
        steps += [partial(at.sync_folder, path) for path in self._folders]
        self._files, self._folders = {}, {}
        return steps


def _synced(steps: Sequence[Callable[[], None]]) -> None:
    """Do syncs; where the first takes long, the rest side by side.

    A disk that is slow to sync takes many at once, and one that is not is done before threads are
    started.
    """
    clock = schedule.current().clock
    began = clock.now()
    _do(steps[:1])
    rest = steps[1:]
    if clock.now() - began < SLOW_S or len(rest) < 2:
        _do(rest)
        return
    first, *others = [rest[i::_AT_ONCE] for i in range(min(_AT_ONCE, len(rest)))]
    beside = [begun for share in others for begun in _beside(partial(_do, share))]
    try:
        _do(first)
    finally:
        schedule.wait(beside)
    for done in beside:
        done.result()


def _beside(work: Callable[[], None]) -> list[Future[None]]:
    """Start work in a thread; where Python is ending and starts none, do it first."""
    try:
        return [schedule.current().start("tidegate-sync", work)]
    except RuntimeError:
        work()
        return []


def _do(steps: Iterable[Callable[[], None]]) -> None:
    for step in steps:
        step()


_local = threading.local()


@contextmanager
def gathering() -> Iterator[Due]:
    """Gather what this thread writes until the block ends; to be synced by who opened it."""
    before, due = gathered(), Due()
    _local.due = due
    try:
        yield due
    finally:
        _local.due = before


def gathered() -> Due | None:
    """What this thread is gathering, if it is."""
    return getattr(_local, "due", None)
