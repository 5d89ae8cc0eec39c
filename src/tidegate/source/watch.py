"""Finds the files that have come to a followed folder or glob since the last look."""

from __future__ import annotations

import glob
import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.source.listing import counts, name_matches, paths_of
from tidegate.source.notices import Notices
from tidegate.source.remote_listing import RemoteWatch
from tidegate.storage import disk

_COARSE_NS = 1_000_000
"""A folder's time of change in whole milliseconds is not from a local file system with a fine
clock. It may not change at all when a file comes, so it is not trusted."""

_TICK_S = 0.1
"""Longer than a tick of a fine clock. A file that appears within the tick in which its folder was
listed does not alter the folder's time of change."""

_BELIEVED_S = 30.0
"""After this time a folder is listed again, even if neither notices nor its time of change ask."""


@dataclass
class _Folder:
    """A folder as it was last listed, at `listed_at`.

    `first_at` is when it was first listed with its present time of change. `told` says that the
    kernel reports new names, so the time of change does not matter.
    """

    pattern: str
    told: bool = False
    changed_ns: int = -1
    first_at: float = 0.0
    listed_at: float = 0.0
    names: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """The names of the folders inside that are followed too."""

    def may_differ(self, changed_ns: int, now: float) -> bool:
        """Whether names may have come since the folder was listed."""
        if self.changed_ns < 0 or now - self.listed_at > _BELIEVED_S:
            return True
        # A time of change counts as proof only when the folder was listed again a tick after it was
        # first seen: a name that came within that tick would not show in it.
        unchanged = changed_ns == self.changed_ns and changed_ns % _COARSE_NS != 0
        return not self.told and not (unchanged and self.listed_at - self.first_at >= _TICK_S)


class Watch:
    """Finds the files that have come since the last look; the first look finds all.

    Where the kernel reports changes (`Notices`), a look costs O(changes). Elsewhere it costs one
    `stat` for each folder, and a listing for each folder that has changed; never a `stat` of known
    files. This grows with the names that are in the folder now, not with all that ever were. A glob
    with wildcards in the names of folders is matched anew at each look, and so is a path that is
    not to be followed.
    """

    def __init__(self, path: str, clock: Clock | None = None, follow: bool = True) -> None:
        self._path = path
        self._clock = clock or schedule.current().clock
        self._folders: dict[str, _Folder] = {}
        self._matched: set[str] = set()
        parent, pattern = os.path.split(path)
        self._pattern = "" if disk.is_folder(path) else pattern
        self._root = parent if self._pattern else path
        self._plain = not (glob.has_magic(parent) or pattern in ("", "**")) or not self._pattern
        self._plain = follow and self._plain
        self._notices = Notices.open() if self._plain and disk.current().notifies else None

    def look(self) -> list[str]:
        """The files that were not there at the last look, in no order."""
        if self._plain:
            told = list(self._told())
            return told + list(self._look_into(self._root, self._pattern))
        before, self._matched = self._matched, set(paths_of(self._path))
        return list(self._matched - before)

    def has(self, path: str) -> bool:
        """Whether a file was there at the last look."""
        folder, name = os.path.split(path)
        return path in self._matched or (
            folder in self._folders and name in self._folders[folder].names
        )

    def check_steady(self, waiting: Container[str]) -> None:
        """Does nothing: local files may grow, and their sources check that they only grow."""

    def _told(self) -> Iterator[str]:
        """New files that the kernel has reported; where it lost reports, all folders are due."""
        notices = self._notices.take() if self._notices is not None else ()
        if notices is None:
            for every in self._folders.values():
                every.changed_ns = -1
            return
        # Of several reports of a name only the last one counts: it came, or it is gone.
        latest = {(folder, name): came for folder, name, came in notices}
        for (folder, name), came in latest.items():
            seen = self._folders.get(folder)
            if seen is None:
                continue
            if not name:  # the folder itself was removed or moved
                seen.told, seen.changed_ns = False, -1
            elif not came:
                seen.names.discard(name)
            elif name not in seen.names:
                seen.names.add(name)
                yield from self._sorted_out(folder, seen, [name])

    def _look_into(self, folder: str, pattern: str) -> Iterator[str]:
        """New files in a folder and below it; with a pattern, only names that match it."""
        seen = self._folders.get(folder)
        now = self._clock.now()
        if seen is None or not seen.told or seen.may_differ(seen.changed_ns, now):
            try:
                changed_ns = disk.current().status(folder or ".").modified_ns
            except FileNotFoundError:
                self._forget(folder)
                return
            seen = seen or self._begin(folder, pattern)
            if seen.may_differ(changed_ns, now):
                seen.listed_at = now
                if changed_ns != seen.changed_ns:
                    seen.changed_ns, seen.first_at = changed_ns, now
                yield from self._list(folder, seen)
        for name in sorted(seen.folders):
            yield from self._look_into(os.path.join(folder, name), "")

    def _begin(self, folder: str, pattern: str) -> _Folder:
        # Subscribe first, list then: in the other order a file could come in between unseen.
        told = self._notices is not None and self._notices.follow(folder)
        self._folders[folder] = _Folder(pattern, told)
        return self._folders[folder]

    def _list(self, folder: str, seen: _Folder) -> Iterator[str]:
        try:
            names = set(disk.current().names(folder or "."))
        except (FileNotFoundError, NotADirectoryError):  # gone since it was looked at
            return
        fresh = names - seen.names
        seen.names = names
        self._forget_below(folder, seen, seen.folders - names)
        yield from self._sorted_out(folder, seen, fresh)

    def _sorted_out(self, folder: str, seen: _Folder, fresh: Iterable[str]) -> Iterator[str]:
        """The files among new names of a folder; remembers the folders among them."""
        for name in fresh:
            path = os.path.join(folder, name)
            if seen.pattern and not name_matches(name, seen.pattern):
                continue
            if disk.is_folder(path):
                if seen.pattern or (counts(name) and not disk.current().is_link(path)):
                    seen.folders.add(name)
            elif counts(name):
                yield path

    def _forget_below(self, folder: str, seen: _Folder, names: Iterable[str]) -> None:
        for name in list(names):
            seen.folders.discard(name)
            self._forget(os.path.join(folder, name))

    def _forget(self, folder: str) -> None:
        gone = self._folders.pop(folder, None)
        if gone is not None:
            self._forget_below(folder, gone, gone.folders)


def watch_of(path: str, clock: Clock | None, follow: bool) -> Watch | RemoteWatch:
    """The watch of a path; without `follow` it is asked only once."""
    if isinstance(path, disk.RemotePath):
        return RemoteWatch(path, clock)
    return Watch(path, clock, follow)
