"""A machine that is simulated: processes that run, die, and find what others left on its disk."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tidegate import disk, schedule
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.process import SimulatedProcess
from tidegate.testing.simulation.schedule import SimFuture, SimSchedule

T = TypeVar("T")


class World:
    """A disk and a schedule from one seed; the engine uses them while the world is `entered`."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self.schedule = SimSchedule(seed)
        self.disk = SimDisk(self.schedule)
        self._processes = 0
        self._losses = 0

    @contextmanager
    def entered(self) -> Iterator[World]:
        """Let the engine run in this world within the block; what is left in the end is killed."""
        collects = gc.isenabled()
        # Writers that are collected close their files, and when that happens is not in the seed.
        gc.disable()
        try:
            with disk.using(self.disk), schedule.using(self.schedule):
                try:
                    yield self
                finally:
                    self.schedule.end()
        finally:
            if collects:
                gc.enable()

    def begin(self, name: str, work: Callable[[], T]) -> tuple[SimulatedProcess, SimFuture[T]]:
        """A new process, and what its main thread will return."""
        self._processes += 1
        process = SimulatedProcess(f"{name} {self._processes}")
        return process, self.schedule.begin(process, name, work)

    def kill(self, process: SimulatedProcess) -> None:
        """End a process as with SIGKILL, and let its threads unwind, which changes nothing."""
        self.schedule.kill(process)

    def pause(self, process: SimulatedProcess, steps: int | None = None) -> None:
        """Let a process stand still, for so many steps of others, or until `resume`."""
        process.paused = True
        if steps is not None:
            at = self.schedule.steps + steps

            def waited() -> None:
                self.schedule.wait_for(lambda: self.schedule.steps >= at, "a pause")
                self.resume(process)

            self.begin("pause", waited)

    def resume(self, process: SimulatedProcess) -> None:
        """Let a process go on that stands still."""
        process.paused = False

    def power_loss(self) -> None:
        """End all processes, and lose what they had not forced to disk."""
        for actor in list(self.schedule._actors):
            self.schedule.kill(actor.process)
        self._losses += 1
        self.disk.power_loss(f"{self.seed} {self._losses}")
