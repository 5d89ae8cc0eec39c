"""Files and folders of the simulated disk, with what of them would outlive a loss of power."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

PAGE_BYTES = 256
"""What is written or lost as one; smaller than real pages, because simulated files are small."""


@dataclass(eq=False)
class File:
    """Bytes with a number; `synced` are those that were there when it was last forced to disk.

    Files grow at their end only, or are replaced, so that what is synced is a prefix of the rest.
    """

    inode: int
    modified_ns: int
    data: bytes = b""
    synced: bytes = b""

    def tear(self, chance: random.Random) -> None:
        """Lose some or all of what was not forced to disk, as a loss of power may do it."""
        if self.data != self.synced:
            self.data = _torn(self.synced, self.data, chance)
            self.synced = self.data


@dataclass(eq=False)
class SimulatedFolder:
    """Names; `synced` are those that a loss of power leaves."""

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
    """A change of names that is not forced to disk yet: `node` takes a name, or loses one, or both.

    It is one step: a loss of power leaves it done or not done.
    """

    node: Node
    gained: tuple[SimulatedFolder, str] | None = None
    lost: tuple[SimulatedFolder, str] | None = None

    @property
    def folder(self) -> SimulatedFolder:
        """The folder that has to be synced for it to last: where a renamed node has gone."""
        place = self.gained or self.lost
        assert place is not None
        return place[0]

    def is_void(self, later: Named) -> bool:
        """Whether a later change that lasts makes this one pointless: it moved the name away."""
        return later.lost is not None and self.gained == later.lost and self.node is later.node

    def settle(self) -> None:
        """Do it for good."""
        if self.lost is not None:
            folder, name = self.lost
            if folder.synced.get(name) is self.node and not _holds(self.node, self.gained):
                del folder.synced[name]
        if self.gained is not None:
            folder, name = self.gained
            folder.synced[name] = self.node


def _holds(node: Node, gained: tuple[SimulatedFolder, str] | None) -> bool:
    """Whether a folder that would be removed still has names that last."""
    return gained is None and isinstance(node, SimulatedFolder) and bool(node.synced)
