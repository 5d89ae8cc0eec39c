"""Runs one life of a driver: it starts, a fault strikes, and it ends one way or another."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate.testing.simulation.disk import CHANGES
from tidegate.testing.simulation.fault import (
    Fails,
    Fault,
    Full,
    Kill,
    PowerLoss,
    Strike,
    Task,
    Torn,
    Zombie,
)
from tidegate.testing.simulation.process import Killed, SimulatedProcess
from tidegate.testing.simulation.runner import SimRunner
from tidegate.testing.simulation.schedule import SimFuture
from tidegate.testing.simulation.world import World

Drive = Callable[[SimRunner], Any]
"""Runs a driver from start to end, with the given runner for its tasks."""


MOST_STEPS = 200_000
"""More steps than any driver of a simulation needs."""


class Livelock(AssertionError):
    """A driver that never ends."""


@dataclass(frozen=True)
class Ended:
    """How a driver ended: with a result, or with what it raised."""

    who: str
    result: Any = None
    failure: BaseException | None = None

    @property
    def killed(self) -> bool:
        return isinstance(self.failure, Killed)


class Life:
    """A driver in a world, with at most one fault. Used once."""

    def __init__(self, world: World, name: str, drive: Drive, fault: Fault | None = None) -> None:
        self.happened = False
        """Whether the fault has struck."""
        self.two = False
        """Whether a second driver ran a job while the first held the lock: must stay False."""
        self._world = world
        self._name = name
        self._drive = drive
        self._fault = fault
        self._counted = 0
        self._runner = SimRunner(
            world, f"{world.seed} {name}", (fault.attempt,) if isinstance(fault, Task) else ()
        )

    def live(self) -> list[Ended]:
        """Run until the driver has ended; how it ended. One that took over comes first."""
        process, future = self._begin(self._runner)
        self._process = process
        self._arm()
        self._run(lambda: future.done() or process.paused)
        self._disarm()
        ends = self._take_over(process, future) if process.paused else []
        self._run(future.done)
        self._world.disk.locks = True
        return [*ends, _ended(f"{self._name}, who stood still" if ends else self._name, future)]

    def _begin(self, runner: SimRunner) -> tuple[SimulatedProcess, SimFuture[Any]]:
        return self._world.begin("driver", lambda: self._drive(runner))

    def _run(self, until: Callable[[], bool]) -> None:
        schedule = self._world.schedule
        most = schedule.steps + MOST_STEPS
        schedule.run(lambda: until() or schedule.steps > most)
        if not until():
            raise Livelock(f"{self._name} goes on for more than {MOST_STEPS} steps")

    def _take_over(self, first: SimulatedProcess, running: SimFuture[Any]) -> list[Ended]:
        """Run a second driver while the first is paused, then resume the first."""
        fault, world = self._fault, self._world
        assert isinstance(fault, Zombie)
        runner = SimRunner(world, f"{world.seed} {self._name} again")
        works = fault.locks and self._runner.ran

        def came_to_work() -> None:
            # One that is about to end has let its lock go already.
            self.two = works and not running.done() and first not in world.disk.unclaimed

        runner.on_first_run = came_to_work
        second, taken = self._begin(runner)
        second.at_step = self._at(fault.resumed, lambda: world.resume(first))
        self._run(taken.done)
        world.resume(first)
        return [_ended(f"{self._name}, who took over", taken)]

    def _arm(self) -> None:
        world, process = self._world, self._process
        match self._fault:
            case Kill(step):
                process.at_step = self._at(step, lambda: world.kill(process))
            case Task(_, step) if step is not None:
                process.at_step = self._at(step, lambda: world.kill(process))
            case PowerLoss(step):
                process.at_step = self._at(step, world.power_loss)
            case Zombie(step, locks):
                world.disk.locks = locks
                process.at_step = self._at(step, lambda: world.pause(process))
            case Full(room_bytes):
                world.disk.room_bytes = room_bytes
            case Fails():
                world.disk.fail = self._fail
            case Strike():
                world.disk.fail = self._strike
            case Torn():
                world.disk.written = self._written

    def _disarm(self) -> None:
        disk = self._world.disk
        if isinstance(self._fault, Full):
            self.happened = disk.room_bytes == 0
        if isinstance(self._fault, Task):
            self.happened |= bool(self._runner.happened)
        disk.room_bytes = None
        disk.fail = lambda operation, path: None
        disk.written = lambda path, content: content
        self._process.at_step = None

    def _at(self, step: int, action: Callable[[], None]) -> Callable[[int, str], None]:
        def at_step(number: int, name: str) -> None:
            if number == step:
                self.happened = True
                action()

        return at_step

    def _fail(self, operation: str, path: str) -> None:
        fault = self._fault
        assert isinstance(fault, Fails)
        if not path.startswith(fault.where) or path.startswith("/in"):
            return
        if fault.error != errno.EIO and operation not in CHANGES:
            return
        self._counted += 1
        if self._counted == fault.operation:
            self.happened = True
            raise OSError(fault.error, "simulated", path)

    def _strike(self, operation: str, path: str) -> None:
        fault, world = self._fault, self._world
        assert isinstance(fault, Strike)
        if operation == fault.operation and fault.path in path:
            self._counted += 1
            if self._counted == fault.count:
                self.happened = True
                if fault.power:
                    world.power_loss()
                world.kill(self._process)
                world.schedule.check()

    def _written(self, path: str, content: bytes) -> bytes:
        fault = self._fault
        assert isinstance(fault, Torn)
        self._counted += 1
        if self._counted != fault.write:
            return content
        self.happened = True
        self._world.kill(self._process)
        return content[: round(len(content) * fault.part)]


def _ended(who: str, future: SimFuture[Any]) -> Ended:
    failure = future.exception()
    return Ended(who, None if failure is not None else future.result(), failure)
