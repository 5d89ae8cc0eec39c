"""Runs programs of the papers at once on a machine with many cores, each on cores of its own.

A lane is as many cores as a program is told to use. A program with several cases takes as many
lanes as it has cases that can run at once; the others take one. The first kind goes first, then the
longest, so that little is left at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from measure import CORES, HERE, environment_on
from paper_list import Program

Lane = tuple[int, ...]
Ended = tuple[Program, list[Lane], int, float]


def lanes_of(cpus: Sequence[int], many: int) -> list[Lane]:
    """The cores of each lane."""
    if many * CORES > len(cpus):
        raise SystemExit(f"--lanes {many}: needs {many * CORES} cores; got {len(cpus)}.")
    return [tuple(cpus[place * CORES : (place + 1) * CORES]) for place in range(many)]


def in_order(programs: Sequence[Program]) -> list[Program]:
    return sorted(programs, key=lambda one: (one.beside == 1, -one.minutes))


class Lanes:
    """Programs that run now, and the lanes that are free; those that run late are killed."""

    def __init__(self, lanes: Sequence[Lane], minutes: float, logs: Path) -> None:
        self._all, self._free = len(lanes), list(lanes)
        self._until = time.monotonic() + 60 * minutes
        self._logs, self._running = logs, dict[str, subprocess.Popen[bytes]]()
        self._ended: SimpleQueue[Ended] = SimpleQueue()

    def run(self, programs: Sequence[Program], begin: Callable[[Program], None]) -> list[str]:
        """Run what the time suffices for; the names of those that were started and failed."""
        left, failed = in_order(programs), list[str]()
        while left or self._running:
            while left and self._start(left[0], begin):
                left.pop(0)
            left = [one for one in left if self._suffices(one)]
            if not self._running:
                continue
            try:
                program, lanes, code, minutes = self._ended.get(timeout=max(self._left_s(), 0.1))
            except Empty:
                self._kill()
                continue
            del self._running[program.name]
            self._free += lanes
            failed += [program.name] * bool(code)
            print(f"{program.name}: {minutes:.1f} minutes, ended with {code}", flush=True)
        return failed

    def _left_s(self) -> float:
        return self._until - time.monotonic()

    def _many(self, program: Program) -> int:
        return min(program.beside, self._all)

    def _suffices(self, program: Program) -> bool:
        return self._left_s() > 60 * program.minutes / self._many(program)

    def _start(self, program: Program, begin: Callable[[Program], None]) -> bool:
        many = self._many(program)
        if many > len(self._free) or not self._suffices(program):
            return False
        mine, self._free = self._free[:many], self._free[many:]
        cpus = [cpu for lane in mine for cpu in lane]
        begin(program)
        print(f"{program.name}: on cores {cpus}", flush=True)
        with (self._logs / f"{program.name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *program.of_lanes(many)],
                cwd=HERE.parent,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment_on(cpus),
            )
        self._running[program.name] = process
        Thread(target=self._wait, args=(program, mine, process), daemon=True).start()
        return True

    def _wait(self, program: Program, lanes: list[Lane], process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        code = process.wait()
        self._ended.put((program, lanes, code, (time.monotonic() - began) / 60))

    def _kill(self) -> None:
        """End what is late, with all that it has started."""
        for process in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
