"""Holds the sequence of ready tuples, which each reader goes through once."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.errors import GateError, near
from tidegate.gate.frontier import Progress, lowered
from tidegate.gate.loose import LooseRun, Values
from tidegate.gate.merge import Section, SortedRun


@dataclass(frozen=True)
class Passage:
    """What one reader takes: positions [start, stop), and the sections that have them."""

    start: int
    stop: int
    sections: tuple[Section, ...]

    def table(self) -> pa.Table:
        """The tuples. It merges what is not merged yet, so call it without the gate's lock."""
        return pa.concat_tables([s.rows(self.start, self.stop) for s in self.sections])


class ReadySequence:
    """Ready tuples in the total order, from the oldest one that some reader still needs.

    A reader still needs the tuple that it was given last, because others may join there. Positions
    count from the first tuple that was ever ready. Not thread-safe: the gate calls it with its lock
    held. No call copies tuples.
    """

    def __init__(self, readers: Sequence[str]) -> None:
        self.stop = 0
        self._sections: list[Section] = []
        self._starts: list[int] = []
        self._oldest = 0
        self._positions: dict[str, int] = {}
        self._joined: dict[str, int] = {}
        """The position at which each reader joined."""
        self.join(readers)

    def extend(self, parts: Sequence[SortedRun]) -> None:
        """Add tuples that have become ready; they come after all that are here."""
        section = Section(self.stop, parts)
        self._sections.append(section)
        self._starts.append(section.start)
        self.stop = section.stop

    def take(self, reader: str, most: int | None) -> Passage:
        """Move a reader past its next tuples; free what all readers have passed."""
        start = self.position(reader)
        stop = self.stop if most is None else min(self.stop, start + most)
        if start == stop:
            return Passage(start, stop, ())
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, stop - 1)
        passage = Passage(start, stop, tuple(self._sections[first:last]))
        self._positions[reader] = stop
        self._free()
        return passage

    def give_back(self, reader: str, passage: Passage) -> None:
        """Undo a `take` whose merge failed, unless the reader has left or gone on since."""
        if self._positions.get(reader) != passage.stop:
            return
        kept_from = self._starts[0] if self._starts else self.stop
        freed = [s for s in passage.sections if s.start < kept_from]
        self._sections[:0] = freed
        self._starts[:0] = [s.start for s in freed]
        self._positions[reader] = passage.start
        self._oldest = min(self._oldest, passage.start)

    def position(self, reader: str) -> int:
        self._check_known(reader)
        return self._positions[reader]

    def join(self, readers: Sequence[str], at: str | None = None) -> None:
        """Let readers start with the tuple that the reader `at` was given last, or where it began.

        Without `at` they start with the oldest tuple that some reader has not been given.
        """
        start = self._oldest if at is None else self._last_of(at)
        for place, reader in enumerate(readers):
            if reader in self._positions or reader in readers[:place]:
                raise GateError(
                    f"reader {reader}",
                    "must not be here yet",
                    "an announcement of it",
                    "Give each reader a name of its own, or remove the other one before.",
                )
        self._positions.update(dict.fromkeys(readers, start))
        self._joined.update(dict.fromkeys(readers, start))
        self._oldest = min(self._oldest, start)

    def leave(self, readers: Sequence[str]) -> None:
        """Let readers leave; what only they needed is freed, unless they were the last."""
        for reader in readers:
            self._check_known(reader)
        for reader in readers:
            self._positions.pop(reader, None)
            self._joined.pop(reader, None)
        self._free()

    def positions(self) -> Mapping[str, int]:
        return dict(self._positions)

    def kept_rows(self) -> int:
        """Rows in sections that are still in memory."""
        return self.stop - self._starts[0] if self._starts else 0

    def _free(self) -> None:
        # Without any reader nothing is freed: the next one to join begins at the oldest tuple.
        self._oldest = min(self._positions.values(), default=self._oldest)
        needed = min(map(self._last_of, self._positions), default=self._oldest)
        passed = 0
        while passed < len(self._sections) and self._sections[passed].stop <= needed:
            passed += 1
        if passed:
            del self._sections[:passed], self._starts[:passed]

    def _last_of(self, reader: str) -> int:
        """The position of the tuple that a reader was given last, or of its first one."""
        return max(self.position(reader) - 1, self._joined[reader])

    def _check_known(self, reader: str) -> None:
        if reader not in self._positions:
            remedy = near(reader, self._positions)
            raise GateError(f"reader {reader}", "must be known", "no such reader", remedy)


class WaitingSource:
    """A source of the gate, with its tuples that are not ready.

    Change it under the gate's lock only. An append also holds `append_lock`, because a source is
    one sequence. `position` is its place among all sources that ever joined the gate. `left` is set
    when it is removed; what waits then still comes out in its place.
    """

    def __init__(self, name: str, position: int, promised_us: int) -> None:
        self.name = name
        self.position = position
        self.progress = Progress(promise_us=promised_us)
        self.left = False
        self.append_lock = threading.Lock()
        self._runs: deque[SortedRun | LooseRun] = deque()

    def add(self, run: SortedRun | None, newest_us: int) -> None:
        self.progress = replace(self.progress, newest_us=newest_us)
        if run is not None:
            self._runs.append(run)

    def add_row(self, time_us: int, values: Values, schema: pa.Schema, disorder_us: int) -> None:
        """Add a single row, which is not before any other of the source."""
        newest = self._runs[-1] if self._runs else None
        if not isinstance(newest, LooseRun):
            progress = self.progress
            bound_us = max(lowered(progress.newest_us, disorder_us), progress.promise_us)
            newest = LooseRun(schema, bound_us)
            self._runs.append(newest)
        newest.add(time_us, values)
        self.progress = Progress(time_us, self.progress.promise_us, self.progress.ended)

    def end(self) -> None:
        self.progress = replace(self.progress, ended=True)

    def take_ready(self, frontier_us: int) -> list[SortedRun]:
        """Remove and return what is below the frontier, in the order of its runs.

        Touches the runs that come out and those that may overlap the frontier. Without disorder
        only one run does, so a run is touched about twice in its life.
        """
        ready: list[SortedRun] = []
        waits: list[SortedRun | LooseRun] = []
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
