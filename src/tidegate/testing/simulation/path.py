"""Splits paths of a simulated disk, walks its folders, and matches patterns as `glob` does."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

from tidegate.disk import Path
from tidegate.testing.simulation.node import File, SimulatedFolder


def parts_of(path: Path) -> list[str]:
    return [part for part in os.path.abspath(path).split("/") if part]


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
