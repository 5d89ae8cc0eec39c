"""Lists the files of a folder or a glob on another file system, and finds the new ones.

Objects appear whole and do not grow, so a listing tells all there is to know about them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.errors import GateError
from tidegate.source.listing import counts, name_matches, split_glob
from tidegate.storage.disk import RemotePath

_PAUSE_S = 1.0
"""The least pause between two listings of a followed folder: object stores charge for them."""

_SHARE = 10.0
"""After a listing the pause is at least this many times as long as the listing took. So a folder of
a million files does not keep the driver busy."""


class RemoteWatch:
    """Finds the files that have come since the last look; the first look finds all.

    A look lists the folder, unless the pause since the last listing is not over. This grows with
    the names that are in the folder now, not with all that ever were.
    """

    def __init__(self, path: RemotePath, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or schedule.current().clock
        self._next_at = float("-inf")
        self._sizes: dict[str, int] = {}
        self._other: dict[str, tuple[int, int]] = {}

    def look(self) -> list[str]:
        """The files that were not there at the last look, in no order."""
        before = self._clock.now()
        if before < self._next_at:
            return []
        found = remote_paths(self._path)
        after = self._clock.now()
        self._next_at = after + max(_PAUSE_S, _SHARE * (after - before))
        known, self._sizes = self._sizes, {str(f): f.listed.bytes for f in found if f.listed}
        pairs = ((name, known.get(name, size), size) for name, size in self._sizes.items())
        self._other |= {name: (was, size) for name, was, size in pairs if was != size}
        return [file for file in found if str(file) not in known]

    def has(self, path: str) -> bool:
        """Whether a file was there at the last look."""
        return path in self._sizes

    def check_steady(self, waiting: Container[str]) -> None:
        """Refuse files whose size has changed, except those that wait to become whole."""
        other, self._other = self._other, {}
        for name, (was, size) in other.items():
            if name not in waiting:
                raise GateError(
                    name,
                    "a file that was listed must stay as it is on this file system",
                    f"{size} bytes where {was} had been",
                    "Put it back as it was, and write new rows to a new file.",
                )


def remote_paths(path: RemotePath) -> list[RemotePath]:
    """The files below a folder of another file system, or for a glob there.

    Costs one listing: about a request for every thousand files. Everything below the folder before
    a glob's first wildcard is listed, also what the glob does not match.
    """
    root, pattern = split_glob(path)
    below = len(root) + 1
    found = path.disk.files(RemotePath(root, path.disk))
    return [file for file in found if _is_meant(file[below:], pattern)]


def _is_meant(below: str, pattern: list[str]) -> bool:
    """Whether a glob matches a file, or a folder that the file is in; `below` the root."""
    names = below.split("/")
    for taken in _matched(names, pattern):
        if all(counts(name) for name in names[taken:]) and counts(names[-1]):
            return True
    return False


def _matched(names: list[str], pattern: list[str]) -> Iterator[int]:
    """The numbers of leading names of a path that match the whole pattern."""
    if not pattern:
        yield 0
        return
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        for skipped in range(len(names)):
            if any(name.startswith(".") for name in names[:skipped]):
                return
            yield from (skipped + more for more in _matched(names[skipped:], rest))
    elif names and name_matches(names[0], first):
        yield from (1 + more for more in _matched(names[1:], rest))
