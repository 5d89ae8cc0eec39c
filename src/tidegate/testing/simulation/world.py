"""A simulated machine: processes run, die, and find on its disk what others have left."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tidegate import schedule
from tidegate.storage import disk
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
        """Let the engine run in this world within the block; its end kills what is left."""
        collects = gc.isenabled()
        # A collected writer closes its file, which is a step; when that happens no seed decides.
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
        """Start a process; also the future of what its main thread returns."""
        self._processes += 1
        process = SimulatedProcess(f"{name} {self._processes}")
        return process, self.schedule.begin(process, name, work)

    def kill(self, process: SimulatedProcess) -> None:
        """Kill a process as SIGKILL does; its threads unwind, which changes nothing."""
        self.schedule.kill(process)

    def pause(self, process: SimulatedProcess, steps: int | None = None) -> None:
        """Pause a process, for so many steps of others, or until `resume`."""
        process.paused = True
        if steps is not None:
            at = self.schedule.steps + steps

            def waited() -> None:
                self.schedule.wait_for(lambda: self.schedule.steps >= at, "a pause")
                self.resume(process)

            self.begin("pause", waited)

    def resume(self, process: SimulatedProcess) -> None:
        """Let a paused process go on."""
        process.paused = False

    def power_loss(self) -> None:
        """Kill all processes, and lose or tear what they had not synced."""
        for actor in list(self.schedule._actors):
            self.schedule.kill(actor.process)
        self._losses += 1
        self.disk.power_loss(f"{self.seed} {self._losses}")
