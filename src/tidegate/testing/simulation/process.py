"""Simulated processes: what threads belong to, what dies as one, and what has its own memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.memory import MEMORY
from tidegate.operate import opened
from tidegate.state import segment


class Killed(BaseException):
    """Ends a thread of a process that was killed, wherever it is.

    Not an Exception, so that no code takes it for a failure that it can do something about. What
    runs on the way out changes nothing: the disk answers a dead process with this alone.
    """


@dataclass(eq=False)
class SimulatedProcess:
    """A driver, or a worker that runs attempts of tasks.

    `memory` is what its caches held when it last ran, so that processes do not share them.
    """

    name: str
    alive: bool = True
    paused: bool = False
    memory: list[Any] = field(default_factory=list)
    at_death: list[Callable[[], None]] = field(default_factory=list)
    """What the system does for a process that has died, however it did: locks are let go."""
    steps: int = 0
    at_step: Callable[[int, str], None] | None = None
    """Called at each of its steps, with the number and the name, before what the step is for."""


def exchange_memory(held: list[Any]) -> list[Any]:
    """Put what a process has cached in place; what was there before. Empty for a new process."""
    before: list[Any] = []
    for number, cache in enumerate([*MEMORY._caches, segment._verified]):
        before.append((cache._values, cache._loading, cache.bytes))
        fresh: Any = (OrderedDict(), {}, 0)
        cache._values, cache._loading, cache.bytes = held[number] if held else fresh
    before.append(opened._OPENED._kept)
    opened._OPENED._kept = held[-1] if held else OrderedDict()
    return before
