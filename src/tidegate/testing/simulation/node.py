"""Files, folders and paths of the simulated disk, with what would survive a loss of power."""

from __future__ import annotations

import fnmatch
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tidegate.storage.disk import Path

PAGE_BYTES = 256
"""The unit that is written or lost as a whole; small, because simulated files are small."""


@dataclass(eq=False)
class File:
    """A file's bytes and inode; `synced` are the bytes of its last sync.

    Files only grow at their end, or are replaced, so `synced` is a prefix of `data`.
    """

    inode: int
    modified_ns: int
    data: bytes = b""
    synced: bytes = b""

    def tear(self, chance: random.Random) -> None:
        """Lose or damage what was not synced, at random, as a loss of power may do."""
        if self.data != self.synced:
            self.data = _torn(self.synced, self.data, chance)
            self.synced = self.data


@dataclass(eq=False)
class SimulatedFolder:
    """The names in a folder; `synced` are those that survive a loss of power."""

    inode: int
    modified_ns: int
    names: dict[str, Node] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)


Node = File | SimulatedFolder


def _torn(synced: bytes, data: bytes, chance: random.Random) -> bytes:
    fate = chance.randrange(4)
    if fate == 0:
        return synced
    if fate == 1:
        return data
    if fate == 2:
        return data[: chance.randint(min(len(synced), len(data)), len(data))]
    torn = bytearray(data)
    first = len(synced) if data.startswith(synced) else 0
    for start in range(first - first % PAGE_BYTES, len(data), PAGE_BYTES):
        if chance.random() < 0.5:
            low, high = max(start, first), min(start + PAGE_BYTES, len(data))
            torn[low:high] = bytes(high - low)
    return bytes(torn)


@dataclass(frozen=True, eq=False)
class Named:
    """A pending change of names: `node` gains a name, or loses one, or both.

    It is atomic: after a loss of power it has happened or not.
    """

    node: Node
    gained: tuple[SimulatedFolder, str] | None = None
    lost: tuple[SimulatedFolder, str] | None = None

    @property
    def folder(self) -> SimulatedFolder:
        """The folder whose sync makes the change durable: for a rename the new folder."""
        place = self.gained or self.lost
        assert place is not None
        return place[0]

    def is_void(self, later: Named) -> bool:
        """Whether a later durable change cancels this one: it moved away the name gained here."""
        return later.lost is not None and self.gained == later.lost and self.node is later.node

    def settle(self) -> None:
        """Make the change durable."""
        if self.lost is not None:
            folder, name = self.lost
            if folder.synced.get(name) is self.node and not _holds(self.node, self.gained):
                del folder.synced[name]
        if self.gained is not None:
            folder, name = self.gained
            folder.synced[name] = self.node


def _holds(node: Node, gained: tuple[SimulatedFolder, str] | None) -> bool:
    """Whether a folder that would be removed still has durable names."""
    return gained is None and isinstance(node, SimulatedFolder) and bool(node.synced)


def parts_of(path: Path) -> tuple[str, ...]:
    return _parts_of(os.path.abspath(path) if not os.path.isabs(path) else os.fspath(path))


@lru_cache(4096)
def _parts_of(path: str) -> tuple[str, ...]:
    return tuple(part for part in os.path.normpath(path).split("/") if part)


def files_below(path: str, folder: SimulatedFolder) -> Iterator[str]:
    for name, node in folder.names.items():
        if isinstance(node, File):
            yield f"{path}/{name}"
        else:
            yield from files_below(f"{path}/{name}", node)


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern of `glob` matches; `**` stands for any number of folders."""
    return _match_parts(path.split("/"), pattern.split("/"))


def _match_parts(parts: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_match_parts(parts[i:], patterns[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts)
        and fnmatch.fnmatchcase(parts[0], patterns[0])
        and _match_parts(parts[1:], patterns[1:])
    )


def folders_seen(top: SimulatedFolder) -> Iterator[SimulatedFolder]:
    """A folder and all folders below it, as the engine sees them."""
    yield top
    for node in top.names.values():
        if isinstance(node, SimulatedFolder):
            yield from folders_seen(node)


def synced_folders(top: SimulatedFolder) -> Iterator[SimulatedFolder]:
    """A folder and all folders below it that survive a loss of power."""
    yield top
    for node in top.synced.values():
        if isinstance(node, SimulatedFolder):
            yield from synced_folders(node)
