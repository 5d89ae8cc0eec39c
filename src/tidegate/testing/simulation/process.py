"""Simulated processes: they own threads, die as a whole, and have caches of their own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.memory import MEMORY
from tidegate.operate import segment_cache
from tidegate.state.segment import segment


class Killed(BaseException):
    """Ends a thread of a process that was killed, wherever it is.

    It is not an Exception, so no code handles it as a failure. Code that runs on the way out, as
    `finally` blocks, changes nothing: every disk operation of a dead process raises this again.
    """


@dataclass(eq=False)
class SimulatedProcess:
    """A driver, or a worker that runs attempts of tasks.

    `memory` holds its caches while other processes run, so that processes do not share them.
    """

    name: str
    alive: bool = True
    paused: bool = False
    memory: list[Any] = field(default_factory=list)
    at_death: list[Callable[[], None]] = field(default_factory=list)
    """What the system does when the process dies in any way: it releases locks."""
    steps: int = 0
    at_step: Callable[[int, str], None] | None = None
    """Called at each step, with its number and name, before the operation of the step."""


def exchange_memory(held: list[Any]) -> list[Any]:
    """Install the caches of a process and return those installed before; [] for a new process."""
    # All processes share one Python process, and so its module-level caches. Without the exchange a
    # restarted driver would find in memory what it must read from disk.
    before: list[Any] = []
    for number, cache in enumerate([*MEMORY._caches, segment._verified]):
        before.append((cache._values, cache._loading, cache.bytes))
        fresh: Any = (OrderedDict(), {}, 0)
        cache._values, cache._loading, cache.bytes = held[number] if held else fresh
    before.append(segment_cache._OPENED._kept)
    segment_cache._OPENED._kept = held[-1] if held else OrderedDict()
    return before
