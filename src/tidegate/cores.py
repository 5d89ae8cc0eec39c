"""How many cores this process may use: fewer than the machine has, where the system says so.

The JVM counts the same way, so that `local[*]` means the same to Spark and to us.
"""

from __future__ import annotations

import os
from functools import lru_cache
from math import ceil
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where a container reads its share: microseconds of work, or `max`, in so many of a clock."""


@lru_cache
def cores() -> int:
    """Asked for once: the system reads files for the answer, and every task wants it."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        allowed = os.cpu_count() or 1
    return min(allowed, _of_quota(_QUOTA) or allowed)


def _of_quota(file: Path) -> int | None:
    """What a container may use, a started core being one; None where nothing limits it."""
    try:
        work, _, clock = file.read_text().partition(" ")
    except OSError:
        return None
    return None if work == "max" else max(ceil(int(work) / int(clock)), 1)
