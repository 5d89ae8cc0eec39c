"""Threads that run one at a time, in an order that is drawn from a seed.

Every thread of the engine is an actor: a real thread that runs only while it has the baton. At each
step (an operation of the simulated disk, a sleep, a wait for another) it hands the baton to one
that can go on, drawn at random, which may be itself. As nothing else decides who runs, a seed gives
exactly one course. Time is what the actors spend: every step takes a moment, sleeping takes longer.
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
"""What a step takes: no whole number of milliseconds is ever seen, as with a clock that is fine."""


class Deadlock(AssertionError):
    """No actor can go on; the message says what each waits for."""


class SimClock:
    """Time as the schedule has it: the same for all, and only ever going on."""

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
    """A lock to wait for; whoever lets go of it gives the word."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Actor:
    """A thread that runs while it has the baton."""

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
            return True  # to its end
        if process.paused:
            return False
        if self.ready is None or (self.until is not None and now >= self.until):
            return True
        return self.ready()


class SimSchedule:
    """A `tidegate.schedule.Schedule` whose course follows from a seed.

    Processes are begun with `begin`, from outside; `run` lets all actors go on until a condition
    holds. What must happen at some step of a process (a kill, a loss of power) is told to its
    `at_step`.
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
        """The process that runs; None outside of all."""
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
        """A point at which another may run, and at which faults happen; called by all actors.

        Raises Killed in an actor whose process was killed. Outside of actors it does nothing.
        """
        actor = self._running
        if actor is None or threading.current_thread() is not actor.thread:
            return
        self._count(actor.process, name)
        self.time.time_s += STEP_S
        actor.ready, actor.waits_for, actor.until = None, name, None
        self._yield(actor)

    def wait_for(self, ready: Callable[[], bool], what: str, until: float | None = None) -> None:
        """Let others run until something holds, or until a time."""
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
        """End a process at once: its actors get Killed when they are next to run."""
        if process.alive:
            process.alive = False
            for action in process.at_death:
                action()

    def run(self, until: Callable[[], bool]) -> None:
        """From outside: let actors run until a condition holds; a Deadlock where none can go on."""
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
        """Kill what is left, and let it end; the caches of this process are as they were before."""
        for process in {id(a.process): a.process for a in self._actors}.values():
            self.kill(process)
        self.run(lambda: not self._actors)
        if self._loaded is not None:
            self._load(None)

    def described(self) -> str:
        """Who is there and waits for what."""
        lines = [
            f"{a.process.name}{' (paused)' * a.process.paused}, {a.name}: waits for {a.waits_for}"
            for a in self._actors
        ]
        return "\n".join(["no thread can go on", *lines])

    def _yield(self, actor: Actor) -> None:
        self._hand_on(actor)
        self.check()

    def _hand_on(self, actor: Actor | None) -> None:
        """Let the next one run, which may be the caller; from an actor that ends, None."""
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
        """One that can go on; the dead first. Time passes where all that can do so sleep."""
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
    """Work done one after the other, each piece by an actor of its own."""

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
