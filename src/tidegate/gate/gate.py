"""Merges tuples that threads append, for threads that read them: the gate without a query.

Every operation takes effect at one point: in its last (mostly its only) critical section under
the gate's one lock. `append` makes its run and its source's newest time visible there together;
every operation that shows anything to a reader computes the frontier there, moves what lies below
it into the sequence of ready tuples, and moves the reader's position; joining and leaving change a
table there. What an operation returns is fixed at that point, so the order of these points is a
sequential history that respects real time: the gate is linearizable. What is done outside the lock
cannot be seen by others: before it, rows are checked and sorted under the append lock of their
source, and nobody else writes what that depends on; after it, ready tuples are merged, by whichever
reader wants them first, into tables that depend on immutable runs alone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import LONGEST_US, MICROSECOND, time_us
from tidegate.errors import GateError, OptionError, near
from tidegate.gate.admission import Appended, admit
from tidegate.gate.frontier import SourceFeed, check_promise, frontier
from tidegate.gate.loose import RowFitter, Values
from tidegate.gate.ready import ReadySequence, WaitingSource
from tidegate.schema import check_time, fit_rows, normal_schema


@dataclass(frozen=True)
class Joined:
    """How sources have joined: the time from which on they may bring tuples, and their places in
    the total order."""

    promise_us: int
    positions: Mapping[str, int]


@dataclass(frozen=True)
class GateStatus:
    """A gate at one moment, as plain data."""

    frontier_us: int
    sources: Mapping[str, int]
    """By name, the place in the total order; without removed sources."""
    readers: Mapping[str, int]
    """By name, how many tuples the reader has passed, from the first that was ever ready."""
    waiting_rows: int
    kept_rows: int
    late_rows: int
    rejected_rows: int


class Gate:
    """Merges sources into one sequence of ready tuples that every reader sees once, in order.

    The elastic ScaleGate, batch-wise. A tuple is ready when its time is below the frontier: the
    smallest of the sources' newest times, less `disorder`. The order is (time, position of the
    source, sequence in the source); positions count in the order of joining. All methods may be
    called from any thread. Durations are a `timedelta`, times a `datetime` (UTC without a zone);
    integers are microseconds. Tuples are kept until the slowest reader has passed them, those that
    became ready with its last one a little longer; without any readers for ever.
    """

    def __init__(
        self,
        *,
        time: str,
        schema: pa.Schema | None = None,
        sources: Sequence[str] = (),
        readers: Sequence[str] = (),
        disorder: timedelta | int = 0,
    ) -> None:
        self.time = time
        self.disorder_us = _duration_us(disorder)
        self._schema: pa.Schema | None = None
        self._fitter: RowFitter | None = None
        if schema is not None:
            check_time(normal_schema(schema), time, "gate")
            self._decide_schema(normal_schema(schema))
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._frontier_us = MIN_US
        self._sources: dict[str, WaitingSource] = {}
        self._leaving: list[WaitingSource] = []
        self._joined = 0
        self._late_rows = 0
        self._rejected_rows = 0
        self._ready = ReadySequence(_names(readers))
        with self._lock:
            self._join(_names(sources), MIN_US)

    def append(self, source: str, rows: pa.Table | Sequence[Mapping[str, object]]) -> Appended:
        """Add rows at the end of a source's sequence, all of them or none.

        Late rows and rows without a time are given back and counted, not merged. The first rows
        decide the columns where no schema was given. A source that has ended or left is refused.
        """
        with self._lock:
            here, schema, fitter = self._source(source), self._schema, self._fitter
        single = None if fitter is None else fitter.fit(rows)
        if single is not None and self._append_row(here, *single):
            return self._one_row
        while True:
            table = fit_rows(rows, schema, f"source {source}", self.time)
            if schema is None and not table.num_columns:
                return Appended(0, table, table)
            if schema is None:
                check_time(table.schema, self.time, f"source {source}")
            # The append lock is taken before the gate's: rows are checked and sorted under it
            # alone, so that readers and other sources do not wait for a sort.
            with here.append_lock:
                admission = admit(
                    table,
                    self.time,
                    here.progress.newest_us,
                    self.disorder_us,
                    here.progress.promise_us,
                )
                with self._lock:
                    self._check_open(here)
                    if self._schema is schema:
                        self._decide_schema(schema if schema is not None else table.schema)
                        here.add(admission.run, admission.newest_us)
                        self._late_rows += admission.appended.late.num_rows
                        self._rejected_rows += admission.appended.rejected.num_rows
                        self._changed.notify_all()
                        return admission.appended
                    schema = self._schema  # other rows were the first: fit these to them

    def _append_row(self, here: WaitingSource, time_us: int, values: Values) -> bool:
        """Add one row that fits the columns; false where it is not in order."""
        with here.append_lock, self._lock:
            self._check_open(here)
            assert self._schema is not None
            if time_us < here.progress.newest_us or time_us < here.progress.promise_us:
                return False
            here.add_row(time_us, values, self._schema, self.disorder_us)
            self._changed.notify_all()
            return True

    def _decide_schema(self, schema: pa.Schema) -> None:
        """Fix the columns; they never change once there are some. Call with the lock held."""
        if self._fitter is None:
            nothing = schema.empty_table()
            self._one_row = Appended(1, nothing, nothing)
            self._fitter = RowFitter(schema, self.time)
        self._schema = schema

    def next_ready(self, reader: str, most: int | None = None) -> pa.Table:
        """The reader's next ready tuples, all that there are or at most `most`; empty when none.

        Readers share the memory of what they get. Merging is paid for once, by the reader that
        comes first. Without a schema and before any rows the table has no columns.
        """
        if most is not None and most < 0:
            raise OptionError("most", "must be at least 0", str(most))
        with self._lock:
            self._ready.position(reader)
            self._advance()
            reading = self._ready.take(reader, most)
            schema = self._schema if self._schema is not None else pa.schema([])
        if not reading.sections:
            return schema.empty_table()
        try:
            return reading.table()
        except BaseException:
            with self._lock:
                self._ready.give_back(reader, reading)
            raise

    def wait(self, reader: str, timeout_s: float | None = None) -> bool:
        """Block until tuples are ready for a reader; false when time is up, or nothing can come.

        Without a timeout, false says that all sources have ended and the reader has everything.
        """
        with self._lock:
            self._changed.wait_for(lambda: self._has_news(reader), timeout_s)
            return self._ready.position(reader) < self._ready.stop

    def frontier(self) -> int:
        """How far the order is known, in microseconds: no tuple below it will come any more.

        -2**63 before every source has spoken, 2**63 - 1 when all have ended. Never goes back.
        """
        with self._lock:
            return self._advance()

    def announce(
        self, sources: str | Sequence[str], promise: datetime | int | None = None
    ) -> Joined:
        """Let sources join that bring nothing below their promise, or without one the frontier.

        A promise below what readers have been shown is refused, and nobody joins. Until it speaks,
        a source holds the frontier at its promise. A name may be used again after `remove`; it is
        then another source.
        """
        names = _names(sources)
        with self._lock:
            promise_us = self._advance() if promise is None else time_us(promise)
            check_promise(f"source {', '.join(names)}", promise_us, self._frontier_us)
            if promise_us >= MAX_US:
                raise GateError(
                    f"source {', '.join(names)}",
                    "must join before all sources have ended",
                    "an announcement after that",
                    "Announce it earlier, or let sources leave by remove() instead of end().",
                )
            return self._join(names, promise_us)

    def end(self, source: str) -> None:
        """Say that a source will bring no more; it stops holding the frontier back."""
        with self._lock:
            self._source(source).end()
            self._changed.notify_all()

    def remove(self, sources: str | Sequence[str]) -> None:
        """Let sources leave; what they have appended becomes ready as if they had ended.

        Unlike with `end`, others may join afterwards even when these were the last.
        """
        names = _names(sources)
        with self._lock:
            for name in names:
                self._source(name)
            for name in dict.fromkeys(names):
                leaving = self._sources.pop(name)
                leaving.left = True
                if leaving.waits():
                    self._leaving.append(leaving)
            self._changed.notify_all()

    def announce_readers(self, readers: str | Sequence[str], at: str | None = None) -> None:
        """Let readers join, from the tuple on that the reader `at` was given last.

        So who finds in a tuple that others are needed can call them for that tuple (STRETCH,
        algorithm 7). Where `at` was given none yet they begin where it does; without `at`, at the
        oldest tuple that some reader has not been given.
        """
        with self._lock:
            self._ready.join(_names(readers), at)
            self._changed.notify_all()

    def remove_readers(self, readers: str | Sequence[str]) -> None:
        """Let readers leave; tuples that only they had not seen are freed."""
        with self._lock:
            self._ready.leave(_names(readers))
            self._changed.notify_all()

    def status(self) -> GateStatus:
        """Counts and positions now, with what is ready taken as ready."""
        with self._lock:
            return GateStatus(
                self._advance(),
                {name: source.position for name, source in self._sources.items()},
                self._ready.positions(),
                sum(s.waiting_rows() for s in self._all()),
                self._ready.kept_rows(),
                self._late_rows,
                self._rejected_rows,
            )

    def _advance(self) -> int:
        """Compute the frontier, and let what is below it be ready. Called with the lock held.

        From here on nobody may join below it. Costs a few steps per source, and per run that
        comes out.
        """
        reached = frontier(self._frontier_us, self._feeds())
        # Without sources the frontier goes just past what they brought, not to +inf: others may
        # join, and a joining source must not be late.
        if not self._sources:
            newest = [n for s in self._leaving if (n := s.newest_waiting_us()) is not None]
            reached = max([reached, *[n + 1 for n in newest]])
        if reached > self._frontier_us:
            self._frontier_us = reached
            parts = [run for s in self._all() for run in s.take_ready(reached)]
            if parts:
                self._ready.extend(parts)
            self._leaving = [s for s in self._leaving if s.waits()]
        return self._frontier_us

    def _feeds(self) -> list[SourceFeed]:
        """One feed of all sources. Without any it is live, because others may join."""
        members = tuple(s.progress for s in self._sources.values())
        return [SourceFeed(members, self.disorder_us, live=not members)]

    def _all(self) -> list[WaitingSource]:
        """All sources by place in the total order, also those that left while tuples wait."""
        if not self._leaving:
            return list(self._sources.values())
        return sorted([*self._leaving, *self._sources.values()], key=lambda s: s.position)

    def _has_news(self, reader: str) -> bool:
        self._advance()
        return self._ready.position(reader) < self._ready.stop or self._frontier_us == MAX_US

    def _join(self, names: Sequence[str], promised_us: int) -> Joined:
        for place, name in enumerate(names):
            if name in self._sources or name in names[:place]:
                raise GateError(
                    f"source {name}",
                    "must not be here yet",
                    "an announcement of it",
                    "Give each source a name of its own, or remove the other one before.",
                )
        positions = {name: self._joined + place for place, name in enumerate(names)}
        for name, position in positions.items():
            self._sources[name] = WaitingSource(name, position, promised_us)
        self._joined += len(names)
        return Joined(promised_us, positions)

    def _source(self, name: str) -> WaitingSource:
        if name not in self._sources:
            remedy = near(name, self._sources)
            raise GateError(f"source {name}", "must be known", "no such source", remedy)
        return self._sources[name]

    def _check_open(self, source: WaitingSource) -> None:
        if source.left or source.progress.ended:
            raise GateError(
                f"source {source.name}",
                "rows come before it ends or leaves",
                "rows after that",
                "Announce a source for them.",
            )


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _duration_us(duration: timedelta | int) -> int:
    duration_us = duration // MICROSECOND if isinstance(duration, timedelta) else duration
    if not 0 <= duration_us <= LONGEST_US:
        raise OptionError("disorder", "must be from 0 to 10,000 years", str(duration))
    return duration_us
