"""New files of a followed folder or glob, between two looks at the file system."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.clock import Clock, SystemClock
from tidegate.source.listing import counts, paths_of

_COARSE_NS = 1_000_000
"""A folder's time of change that is a whole number of these is not from a local file system with a
fine clock; it may not even change, and is not believed."""

_TICK_S = 0.1
"""Longer than a tick of a fine clock. What appears in a folder within the tick in which it was
listed leaves it with the same time of change."""

_BELIEVED_S = 30.0
"""How long a folder is not listed at most, whatever its time of change says."""


@dataclass
class _Folder:
    """A folder as it was last listed, and when: first with this time of change, and last."""

    changed_ns: int = -1
    first_at: float = 0.0
    listed_at: float = 0.0
    names: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """Those of the names that are folders and are looked into."""

    def may_differ(self, changed_ns: int, now: float) -> bool:
        """Whether something may be there now that was not when it was listed."""
        told = changed_ns == self.changed_ns and changed_ns % _COARSE_NS != 0
        return not told or now - self.listed_at > _BELIEVED_S or self.just_changed()

    def just_changed(self) -> bool:
        """Whether it was last listed when its time of change was news, or nearly so."""
        return self.listed_at - self.first_at < _TICK_S


class Watch:
    """Which files have come since the last look; the first look finds all there are.

    A look costs one `stat` per folder where nothing has changed, and a listing of the folders in
    which something has, without a `stat` of the files that are known. What is kept are the names
    that are there now: it grows with the folder, not with what was ever in it. A glob with
    wildcards in folders' names is matched anew each time.
    """

    def __init__(self, path: str, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._folders: dict[str, _Folder] = {}
        self._matched: set[str] = set()
        parent, pattern = os.path.split(path)
        self._pattern = "" if os.path.isdir(path) else pattern
        self._root = parent if self._pattern else path
        self._plain = not (glob.has_magic(parent) or pattern in ("", "**")) or not self._pattern

    def look(self) -> list[str]:
        """The files that were not there at the last look, in no order."""
        if self._plain:
            return list(self._look_into(self._root, self._pattern))
        before, self._matched = self._matched, set(paths_of(self._path))
        return list(self._matched - before)

    def has(self, path: str) -> bool:
        """Whether a file was there at the last look."""
        folder, name = os.path.split(path)
        return path in self._matched or (
            folder in self._folders and name in self._folders[folder].names
        )

    def _look_into(self, folder: str, pattern: str) -> Iterator[str]:
        """New files in a folder and below; only names that match count where there is a pattern."""
        try:
            changed_ns = os.stat(folder or ".").st_mtime_ns
        except FileNotFoundError:
            self._forget(folder)
            return
        seen = self._folders.setdefault(folder, _Folder())
        now = self._clock.now()
        if seen.may_differ(changed_ns, now):
            seen.listed_at = now
            if changed_ns != seen.changed_ns:
                seen.changed_ns, seen.first_at = changed_ns, seen.listed_at
            yield from self._list(folder, seen, pattern)
        for name in sorted(seen.folders):
            yield from self._look_into(os.path.join(folder, name), "")

    def _list(self, folder: str, seen: _Folder, pattern: str) -> Iterator[str]:
        try:
            names = set(os.listdir(folder or "."))
        except (FileNotFoundError, NotADirectoryError):  # gone since it was looked at
            return
        fresh = names - seen.names
        seen.names = names
        for gone in seen.folders - names:
            self._forget(os.path.join(folder, gone))
        seen.folders &= names
        for name in fresh:
            path = os.path.join(folder, name)
            if pattern and not _matches(name, pattern):
                continue
            if os.path.isdir(path):
                if pattern or (counts(name) and not os.path.islink(path)):
                    seen.folders.add(name)
            elif counts(name):
                yield path

    def _forget(self, folder: str) -> None:
        gone = self._folders.pop(folder, None)
        for name in gone.folders if gone else ():
            self._forget(os.path.join(folder, name))


def _matches(name: str, pattern: str) -> bool:
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)
