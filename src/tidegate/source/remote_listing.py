"""Lists the files of a folder or a glob on another file system, and tells which are new.

Objects appear whole and do not grow: a listing says all there is to know of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.disk import RemotePath
from tidegate.errors import GateError
from tidegate.source.listing import counts, name_matches, split_glob

_PAUSE_S = 1.0
"""How long a followed folder is not listed again at least: a listing is paid for."""

_SHARE = 10.0
"""How many times as long as a listing took nothing is listed after it, so that a folder of a
million files does not keep the driver at it."""


class RemoteWatch:
    """Which files have come since the last look; the first look finds all there are.

    A look lists the folder, unless it was listed just now. What is kept are the names that are
    there now and their sizes: it grows with the folder, not with what was ever in it.
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
        """Refuse files that have another size than they had; but those that wait to be whole."""
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

    Costs one listing, a request for every thousand files or so; what a glob does not match is
    listed too, from the folder on where its first wildcard is.
    """
    root, pattern = split_glob(path)
    below = len(root) + 1
    found = path.disk.files(RemotePath(root, path.disk))
    return [file for file in found if _is_meant(file[below:], pattern)]


def _is_meant(below: str, pattern: list[str]) -> bool:
    """Whether a file is meant by a glob, or is in a folder that is, by its path below the root."""
    names = below.split("/")
    for taken in _matched(names, pattern):
        if all(counts(name) for name in names[taken:]) and counts(names[-1]):
            return True
    return False


def _matched(names: list[str], pattern: list[str]) -> Iterator[int]:
    """With how many of its first names a path matches all of a pattern."""
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
