"""How many cores this process may use; a container or affinity may allow fewer than the machine
has.

The JVM counts in the same way, so `local[*]` means the same to Spark and to us.
"""

from __future__ import annotations

import os
from functools import lru_cache
from math import ceil
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's quota: microseconds of work (or `max`) per so many microseconds of time."""


@lru_cache
def cores() -> int:
    """Cached: the answer takes reading files, and every task wants it."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        allowed = os.cpu_count() or 1
    return min(allowed, _of_quota(_QUOTA) or allowed)


def _of_quota(file: Path) -> int | None:
    """A container's quota in cores, rounded up; None without one."""
    try:
        work, _, clock = file.read_text().partition(" ")
    except OSError:
        return None
    return None if work == "max" else max(ceil(int(work) / int(clock)), 1)
