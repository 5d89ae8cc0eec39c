"""Collects the files that must be on the disk before a batch counts, and syncs them together.

The thread that is about to commit opens `gathering`; writers in it then record files instead of
syncing them. Each file and folder is synced once, before the single step that makes the whole batch
count. On a disk where a sync takes milliseconds, syncs one after the other would cost a small batch
more than all its work; side by side they cost little more than one. Outside `gathering`, writers
sync at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

from tidegate import schedule
from tidegate.storage import disk

SLOW_S = 0.002
"""If the first sync takes this long, the rest go to threads."""

_AT_ONCE = 4
"""How many threads sync at once; a disk has one queue, so more gain nothing."""


class Due:
    """Files and folders to sync, each once. Grows with the files of one batch only."""

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
        """The file's bytes must be synced."""
        self._files[os.path.abspath(path)] = None

    def add_folder(self, path: str | os.PathLike[str]) -> None:
        """The names in the folder must be synced."""
        self._folders[os.path.abspath(path)] = None

    def add_names(self, paths: Iterable[str]) -> None:
        """The bytes and the names of files that a task has written must be synced."""
        for path in paths:
            self.add_file(path)
            self.add_folder(os.path.dirname(path) or ".")

    def move(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """The file was renamed after it was added."""
        if self._files.pop(os.path.abspath(source), self) is None:
            self.add_file(target)

    def begin(self) -> None:
        """Starts syncing what was added so far, while the caller goes on writing; `sync` waits for
        it.

        None of these files may be renamed until then.
        """
        steps = self._taken()
        if steps:
            self._begun += _beside(partial(_synced, steps))

    def sync(self) -> None:
        """Syncs everything added, and waits for `begin`; raises the first OSError."""
        begun, self._begun = self._begun, []
        steps, clock = self._taken(), schedule.current().clock
        began = clock.now()
        try:
            _synced(steps)
        finally:
            # Also after an error: no thread may still sync a file while the caller removes it.
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
    """Runs the syncs, in parallel if the first one is slow.

    A disk with slow syncs takes many at once; on a fast one, starting threads would cost more than
    the syncs.
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
    """Starts work in a thread; runs it here if Python is shutting down and starts no threads."""
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
    """Collects the files that this thread writes in the block; the caller syncs them."""
    before, due = gathered(), Due()
    _local.due = due
    try:
        yield due
    finally:
        _local.due = before


def gathered() -> Due | None:
    """What this thread is collecting; None outside `gathering`."""
    return getattr(_local, "due", None)
