"""The calls that a driver makes to a server, and the fault that one of them meets.

Everything behind a call is real. Before and after each call the driver can die, stand still while
another takes over, or be told of an error; an answer can be lost when the call has been served.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar

from tidegate.testing.simulation.process import SimulatedProcess
from tidegate.testing.simulation.world import World

T = TypeVar("T")

KILL, KILLED, REFUSED, FAILED, LOST, ZOMBIE, BESIDE = KINDS = (
    "killed before",
    "killed after",
    "error before",
    "error after",
    "answer lost",
    "stood still before",
    "another writes before",
)
"""What a call can meet. The last one is only for places that others may write to."""


@dataclass(frozen=True)
class CallFault:
    """The call number `count` of a name, in one life of a driver, meets something.

    One that stands still goes on at the step `resumed` of the driver that took over, or after it;
    that happens once in a life.
    """

    call: str
    kind: str
    count: int = 1
    resumed: int = 1


class Ways(Protocol):
    """How the client of a server shows that a call has failed; each raises, or returns an answer
    that says so."""

    def refused(self) -> object:
        """The call never came to the server."""

    def failed(self) -> object:
        """The call was served, and then there was an error; the connection stays."""

    def lost(self) -> object:
        """The call was served, and the connection broke before the answer."""


class Boundary:
    """Between the drivers of one world and a server. Only the first driver of a life meets faults;
    calls from outside of the world go through."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.beside: Callable[[], None] = lambda: None
        """What another writer does."""
        self.calls: Counter[str] = Counter()
        """Those of the first driver, in this life."""
        self.happened: list[CallFault] = []
        self._faults: list[CallFault] = []
        self._process: SimulatedProcess | None = None

    def begin(self, world: World | None, faults: Sequence[CallFault] = ()) -> None:
        """A new life, or with no world none any more."""
        self.world, self._faults, self._process = world, list(faults), None
        self.calls, self.happened = Counter(), []

    @property
    def process(self) -> SimulatedProcess | None:
        """The driver whose thread this is; None for threads of readers and of libraries."""
        running = None if self.world is None else self.world.schedule._running
        inside = running is not None and running.thread is threading.current_thread()
        return running.process if running is not None and inside else None

    def at_death(self, action: Callable[[], None]) -> None:
        """What the system does when the driver that runs has died, as to close its sockets."""
        if self.process is not None:
            self.process.at_death.append(action)

    def call(self, name: str, work: Callable[[], T], ways: Ways) -> T:
        """Make a call, or what becomes of it; the answer."""
        process, world = self.process, self.world
        if process is None or world is None:
            return work()
        schedule = world.schedule
        kind = self._kind(process, name)
        schedule.step(f"call {name}")
        if kind == KILL:
            self._kill(process)
        if kind == ZOMBIE:
            world.pause(process)
            schedule.step(f"stood still before {name}")
        if kind == BESIDE:
            self.world = None  # what others call is none of ours
            self.beside()
            self.world = world
        if kind == REFUSED:
            return ways.refused()  # type: ignore[return-value]
        answer = work()
        if kind == KILLED:
            self._kill(process)
        if kind == FAILED:
            return ways.failed()  # type: ignore[return-value]
        if kind == LOST:
            return ways.lost()  # type: ignore[return-value]
        schedule.step(f"called {name}")
        return answer

    def _kind(self, process: SimulatedProcess, name: str) -> str | None:
        if self._process is None:
            self._process = process
        if process is not self._process:
            return None
        self.calls[name] += 1
        due = [f for f in self._faults if (f.call, f.count) == (name, self.calls[name])]
        stood = any(fault.kind == ZOMBIE for fault in self.happened)
        due = [fault for fault in due if not (stood and fault.kind == ZOMBIE)]
        self.happened += due[:1]
        return due[0].kind if due else None

    def _kill(self, process: SimulatedProcess) -> NoReturn:
        assert self.world is not None
        self.world.kill(process)
        self.world.schedule.check()
        raise AssertionError("a process that is dead does not go on")
