"""Runs threads one at a time, in an order that is drawn from a seed.

Every thread of the engine is an actor: a real thread that runs only while it holds the baton. At
each step (an operation of the simulated disk, a sleep, a wait for another) it hands the baton to a
random actor that can go on, perhaps itself. Nothing else decides who runs, so a seed gives exactly
one course. Time passes only by steps: each takes a moment, a sleep takes longer.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from tidegate.clock import Clock
from tidegate.testing.simulation.process import Killed, SimulatedProcess, exchange_memory

T = TypeVar("T")

STEP_S = 0.000_037
"""The time of a step. Times are then never whole milliseconds, as with a real fine clock."""


class Deadlock(AssertionError):
    """No actor can go on; the message says what each waits for."""


class SimClock:
    """The time of the schedule: the same for all actors, and never decreasing."""

    def __init__(self, schedule: SimSchedule) -> None:
        self._schedule = schedule
        self.time_s = 1000.0

    def now(self) -> float:
        return self.time_s

    def cpu(self) -> float:
        return self.time_s

    def utc_us(self) -> int:
        return int(self.time_s * 1e6)

    def sleep(self, seconds: float) -> None:
        self.wait(threading.Event(), seconds)

    def wait(self, word: threading.Event, seconds: float) -> None:
        until = self.time_s + seconds
        if self._schedule.process is None:
            self.time_s = until
            return
        self._schedule.wait_for(lambda: self.time_s >= until or word.is_set(), "sleep", until)


class SimFuture(Future[T]):
    """A future that is waited for in simulated time."""

    def __init__(self, schedule: SimSchedule, name: str) -> None:
        super().__init__()
        self._schedule = schedule
        self._name = name

    def result(self, timeout: float | None = None) -> T:
        self._await(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._await(timeout)
        return super().exception(0)

    def _await(self, timeout: float | None) -> None:
        if not self.done():
            until = None if timeout is None else self._schedule.clock.now() + timeout
            self._schedule.wait_for(self.done, self._name, until)


def _taken() -> threading.Lock:
    """A lock that is held already: to acquire it is to wait until somebody releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Actor:
    """A thread that runs only while it holds the baton."""

    def __init__(self, name: str, process: SimulatedProcess, run: Callable[[], None]) -> None:
        self.name = name
        self.process = process
        self.baton = _taken()
        self.ready: Callable[[], bool] | None = None
        """What it waits for; None where it can go on."""
        self.waits_for = "its start"
        self.until: float | None = None
        self.thread = threading.Thread(target=run, name=name, daemon=True)

    def can_run(self, now: float) -> bool:
        process = self.process
        if not process.alive:
            return True  # it must run to its end, where it gets Killed
        if process.paused:
            return False
        if self.ready is None or (self.until is not None and now >= self.until):
            return True
        return self.ready()


class SimSchedule:
    """A `tidegate.schedule.Schedule` whose course follows from a seed.

    A test calls `begin` to start a process, and `run` to let all actors go on until a condition
    holds. To do something at a step of a process (a kill, a loss of power) it sets `at_step` of
    that process.
    """

    def __init__(self, seed: int | str) -> None:
        self._chance = random.Random(f"schedule {seed}")
        self.time = SimClock(self)
        self.clock: Clock = self.time
        self.steps = 0
        self._actors: list[Actor] = []
        self._running: Actor | None = None
        self._loaded: SimulatedProcess | None = None
        self._outside = _taken()
        self._until: Callable[[], bool] = lambda: False
        self._tokens = 0

    @property
    def process(self) -> SimulatedProcess | None:
        """The running process; None in the test's own thread."""
        return None if self._running is None else self._running.process

    def start(self, name: str, work: Callable[[], T], daemon: bool = False) -> Future[T]:
        """A new actor of the process that runs."""
        assert self._running is not None, "threads are started by processes"
        future = self.begin(self._running.process, name, work)
        self.step("start")
        return future

    def begin(self, process: SimulatedProcess, name: str, work: Callable[[], T]) -> SimFuture[T]:
        """A new actor of a process."""
        future: SimFuture[T] = SimFuture(self, name)

        def run() -> None:
            actor.baton.acquire()
            try:
                if not process.alive:
                    raise Killed
                future.set_result(work())
            except BaseException as failure:
                future.set_exception(failure)
            self._actors.remove(actor)
            self._hand_on(None)

        actor = Actor(name, process, run)
        self._actors.append(actor)
        actor.thread.start()
        return future

    def line(self, name: str) -> SimLine:
        return SimLine(self, name)

    def hold(self, lock: threading.Lock) -> AbstractContextManager[Any]:
        return self._held(lock)

    @contextmanager
    def _held(self, lock: threading.Lock) -> Iterator[None]:
        while not lock.acquire(blocking=False):
            self.wait_for(lambda: not lock.locked(), "a lock")
        try:
            yield
        finally:
            lock.release()

    def token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:06d}"

    def step(self, name: str) -> None:
        """A point at which another actor may run and a fault may strike; all actors call it.

        Raises Killed in an actor whose process was killed. Does nothing outside of actors.
        """
        actor = self._running
        if actor is None or threading.current_thread() is not actor.thread:
            return
        self._count(actor.process, name)
        self.time.time_s += STEP_S
        actor.ready, actor.waits_for, actor.until = None, name, None
        self._yield(actor)

    def wait_for(self, ready: Callable[[], bool], what: str, until: float | None = None) -> None:
        """Let other actors run until `ready` holds, or until a time."""
        actor = self._running
        if actor is None or threading.current_thread() is not actor.thread:
            self.run(ready)
            return
        self._count(actor.process, "wait")
        actor.ready, actor.waits_for, actor.until = ready, what, until
        self._yield(actor)

    def _count(self, process: SimulatedProcess, name: str) -> None:
        self.check()
        self.steps += 1
        process.steps += 1
        if process.at_step is not None:
            process.at_step(process.steps, name)

    def check(self) -> None:
        """Raise Killed where the process of the running actor is dead."""
        if self._running is not None and not self._running.process.alive:
            raise Killed

    def kill(self, process: SimulatedProcess) -> None:
        """Kill a process: its actors get Killed when they run next."""
        if process.alive:
            process.alive = False
            for action in process.at_death:
                action()

    def run(self, until: Callable[[], bool]) -> None:
        """Called by the test: let actors run until `until` holds. Deadlock where none can."""
        if until():
            return
        assert self._running is None
        self._until = until
        chosen = self._chosen()
        if chosen is not None:
            self._give(chosen)
            self._outside.acquire()
        self._running = None
        self._until = lambda: False
        if not until():
            raise Deadlock(self.described())

    def end(self) -> None:
        """Kill and end all actors that are left, and restore the caches of this Python process."""
        for process in {id(a.process): a.process for a in self._actors}.values():
            self.kill(process)
        self.run(lambda: not self._actors)
        if self._loaded is not None:
            self._load(None)

    def described(self) -> str:
        """The actors and what each waits for, for messages."""
        lines = [
            f"{a.process.name}{' (paused)' * a.process.paused}, {a.name}: waits for {a.waits_for}"
            for a in self._actors
        ]
        return "\n".join(["no thread can go on", *lines])

    def _yield(self, actor: Actor) -> None:
        self._hand_on(actor)
        self.check()

    def _hand_on(self, actor: Actor | None) -> None:
        """Let the next actor run, perhaps the caller; an actor that ends passes None."""
        chosen = None if self._until() else self._chosen()
        if chosen is not None and chosen is actor:
            return
        if chosen is None:
            self._running = None
            self._outside.release()
        else:
            self._give(chosen)
        if actor is not None:
            actor.baton.acquire()

    def _give(self, actor: Actor) -> None:
        self._running = actor
        if actor.process is not self._loaded:
            self._load(actor.process)
        actor.baton.release()

    def _load(self, process: SimulatedProcess | None) -> None:
        before = exchange_memory(self._outer if process is None else process.memory)
        if self._loaded is None:
            self._outer = before
        else:
            self._loaded.memory = before
        self._loaded = process

    _outer: list[Any]

    def _chosen(self) -> Actor | None:
        """A random actor that can go on. Where all wait for a time, time moves on to the next."""
        # Actors of dead processes come first: they must unwind before anything else happens, as
        # the threads of a killed process would be gone at once.
        actors = self._actors
        now = self.time.time_s
        for actor in actors:
            if not actor.process.alive:
                return actor
        able = [a for a in actors if a.can_run(now)]
        if not able:
            asleep = [a for a in actors if a.until is not None and not a.process.paused]
            if not asleep:
                return None
            self.time.time_s = max(now, min(a.until for a in asleep if a.until is not None))
            able = [a for a in actors if a.can_run(self.time.time_s)]
        return able[0] if len(able) == 1 else able[self._chance.randrange(len(able))]


class SimLine:
    """Runs pieces of work one after the other, each by an actor of its own."""

    def __init__(self, schedule: SimSchedule, name: str) -> None:
        self._schedule = schedule
        self._name = name
        self._given: list[Future[Any]] = []

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        before = self._given[-1] if self._given else None

        def run() -> T:
            if before is not None:
                before.exception()
            return work(*arguments)

        future = self._schedule.start(self._name, run)
        self._given = [future]
        return future

    def shutdown(self, wait: bool = True) -> None:
        if wait and self._given:
            self._given[-1].exception()
