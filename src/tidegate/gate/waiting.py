"""One source of a gate object: what it has shown, and its runs that wait for the frontier."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

from tidegate.batch import MAX_US
from tidegate.gate.frontier import Progress
from tidegate.gate.merge import SortedRun


class WaitingSource:
    """Changed under the gate's lock; who appends holds `append_lock` too: it is one sequence.

    `position` is its place among all sources that ever joined the gate. `left` is set when it was
    removed: what waits then still comes out in its place.
    """

    def __init__(self, name: str, position: int, promised_us: int) -> None:
        self.name = name
        self.position = position
        self.progress = Progress(promise_us=promised_us)
        self.left = False
        self.append_lock = threading.Lock()
        self._runs: deque[SortedRun] = deque()

    def add(self, run: SortedRun | None, newest_us: int) -> None:
        self.progress = replace(self.progress, newest_us=newest_us)
        if run is not None:
            self._runs.append(run)

    def end(self) -> None:
        self.progress = replace(self.progress, ended=True)

    def take_ready(self, frontier_us: int) -> list[SortedRun]:
        """Remove and return what is below the frontier, in the order of its runs.

        Looks at each run that comes out and at those that may overlap the frontier: with no
        disorder that is one, so a run is looked at about twice in its life.
        """
        ready: list[SortedRun] = []
        waits: list[SortedRun] = []
        while self._runs and (self._runs[0].bound_us < frontier_us or frontier_us == MAX_US):
            head, tail = self._runs.popleft().split(frontier_us)
            if head is not None:
                ready.append(head)
            if tail is not None:
                waits.append(tail)
        self._runs.extendleft(reversed(waits))
        return ready

    def waits(self) -> bool:
        return bool(self._runs)

    def newest_waiting_us(self) -> int | None:
        return max((run.newest_us for run in self._runs), default=None)

    def waiting_rows(self) -> int:
        return sum(run.rows for run in self._runs)
