"""How much memory this process may hold, and a check that fails before the system kills the
process.

Only memory that belongs to this process alone is counted. Pages of mapped files (state, spilled
rows) are not: the system can reclaim them at any time. Long work checks between its pieces
(`cancellation.between_pieces`); a check costs some ten microseconds.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

SHARE = 0.75
"""The share of the machine or container for all processes that run tasks, by default."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_UNLIMITED = 2**60
_V2, _V1 = "memory.max", "memory.limit_in_bytes"


class MemoryLimit:
    """The limit of this process; the functions in `release` free memory that can be had again."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.bytes = default_limit(1) if limit_bytes is None else limit_bytes
        self.release: list[Callable[[], None]] = [_give_back]

    def check(self, more_bytes: int = 0) -> None:
        """Raises MemoryError if the process exceeds its limit, or would with `more_bytes`."""
        if used_bytes() + more_bytes <= self.bytes:
            return
        for action in self.release:
            action()
            if (used := used_bytes()) + more_bytes <= self.bytes:
                return
        wanted = f" and needs {size_text(more_bytes)} more" if more_bytes else ""
        raise MemoryError(
            f"{size_text(used)} in one process{wanted}, where {size_text(self.bytes)} are allowed"
        )


def used_bytes() -> int:
    """Bytes that only this process holds; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


def default_limit(processes: int) -> int:
    """The default limit of a process, if this many share the machine."""
    return int(SHARE * available_bytes()) // max(processes, 1)


@cache
def available_bytes() -> int:
    """The memory of the machine, or of the container if that is less (cgroups v1 and v2)."""
    machine = _PAGE * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_container_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def _container_limits(listed: Path, mounted: Path) -> Iterator[int]:
    """The limits of a process's control groups and of the groups above them.

    Inside a container its own group is usually mounted as the root.
    """
    try:
        lines = listed.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        roots, name = ([mounted, mounted / "unified"], _V2)
        if controllers:
            roots, name = ([mounted / "memory"], _V1)
        inside = [p for p in Path(path.lstrip("/")).parts if p != ".."]
        for root in roots:
            for depth in range(len(inside) + 1):
                yield from _limit_in(root.joinpath(*inside[:depth]) / name)


def _limit_in(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdecimal() and 0 < int(text) < _UNLIMITED:
        yield int(text)


def size_text(size: int) -> str:
    """A size for people: 1.5 GB, 300 MB; units are powers of 1024."""
    if size >= 2**30:
        return f"{size / 2**30:.1f} GB"
    return f"{max(size, 0) / 2**20:.0f} MB"


def _give_back() -> None:
    """Makes allocators return unused memory to the system."""
    gc.collect()
    import pyarrow as pa  # not above: commands that run no query need no Arrow

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


LIMIT = MemoryLimit()
"""The limit of this process."""
