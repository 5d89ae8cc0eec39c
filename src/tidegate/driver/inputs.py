"""Holds the gate and the connections of a query, and cuts its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.connector import Connector
from tidegate.driver.connection import Connection, opened
from tidegate.driver.options import RunOptions
from tidegate.gate.backlog import Backlog
from tidegate.gate.cut import Cut
from tidegate.gate.extent import Extent, Holder, InletReach, reaches_of, silent_of
from tidegate.gate.intake import Intake
from tidegate.gate.rewind import Goal, rewound
from tidegate.plan.physical import Plan
from tidegate.schedule import beside
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_LEAST_WAIT_S = 0.001
"""An idle loop waits at least so long, so that rows of one millisecond come in one batch."""


class Inputs:
    """The gate of a query with its connections; called by several threads.

    The loop calls it between batches, user threads when sources join or leave, and a thread of its
    own reads ahead. `wake` is called in any thread when new input may be there.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        clock: Clock,
        options: RunOptions,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._store = store
        self._clock = clock
        self._options = options
        self._wake = wake
        self._intake = Intake(plan.hold, measured=not options.available_now)
        self._lock = threading.Lock()
        self._closing: list[Callable[[], None]] = []
        self._goal: Goal | None = None
        """Where the next batch must end, if it repeats a committed one."""

    def restore(self, manifest: Manifest) -> None:
        """Continue at the positions of a manifest; call before `let_in`."""
        self._intake.restore(manifest.frontier_us, manifest.sources, self._store)

    def rewind(self, before: Manifest, last: Manifest) -> None:
        """Continue at the positions of `before`, to repeat batches up to `last`.

        Call it before `let_in`; then `repeat` before each batch says where it ends.
        """
        entries = rewound(before.sources, last.sources, self._store)
        self._intake.restore(before.frontier_us, entries, self._store)

    def end_at(self, before: Manifest, last: Manifest) -> None:
        """As `rewind`; batches that are not repeated end at the latest where `last` ends."""
        self.rewind(before, last)
        self._intake.end_at(_goal(before, last))

    def repeat(self, before: Manifest, after: Manifest) -> None:
        """Make the next batch the one between two manifests; it ends exactly where it did."""
        self._goal = _goal(before, after)

    def let_in(self, connections: Sequence[Connection]) -> None:
        """Open the sources of the query, and those that joined an earlier run under a URI."""
        for connection in connections:
            stream = self._plan.streams[connection.stream]
            self._attach(connection.connector)
            self._intake.add(
                connection.stream,
                connection.connector,
                stream.disorder_us,
                stream.idle_us,
                now=self._clock.now(),
                uri=connection.uri,
            )
        for joined in self._intake.joined_before():
            stream = self._plan.streams[joined.stream]
            if joined.uri is None:
                joined.idle_us, joined.spoke_at = stream.idle_us, self._clock.now()
            else:
                connector = opened(joined.uri, stream, self._options)
                self.join(Connection(joined.stream, connector, joined.uri))
        self._intake.check_complete()

    def join(self, connection: Connection, promised_us: int | None = None) -> None:
        """Let a source join at the next batch."""
        stream = self._plan.streams[connection.stream]
        self._attach(connection.connector)
        with self._alone():
            # A batch cut ahead may have moved the frontier beyond what the source promises.
            self._intake.drop_ahead()
            self._intake.join(
                connection.stream,
                connection.connector,
                stream.disorder_us,
                stream.idle_us,
                promised_us,
                self._clock.now(),
                connection.uri,
            )
        self._wake()

    def remove(self, source_id: str) -> None:
        """Let a source leave at the next batch."""
        with self._alone():
            self._intake.drop_ahead()
            self._intake.remove(source_id)
        self._wake()

    def cut(self, limit_rows: int, now: float) -> Cut | None:
        """The next batch, which may have been cut ahead; None if it would change nothing."""
        with self._alone():
            ahead = self._intake.take_ahead(limit_rows)
            if ahead is not None:
                return ahead
            self._intake.discover(now)
            if self._goal is not None:
                return self._intake.cut_again(self._goal, not self._options.available_now)
            return self._intake.next_cut(limit_rows, now)

    def expected_s(self) -> float:
        """The longest time to wait before looking for input again."""
        connectors = [inlet.connector for inlet in self._intake.inlets]
        asked = [c.expected_s() for c in connectors]
        known = [seconds for seconds in asked if seconds is not None]
        return max(min([self._options.poll_s, *known]), _LEAST_WAIT_S)

    def arriving(self) -> bool:
        """Whether input that existed when the run started has not been delivered yet."""
        connectors = [inlet.connector for inlet in self._intake.inlets]
        return any(c.arriving() for c in connectors)

    def new_sources(self) -> list[str]:
        """The names of sources with tuples that no run has read."""
        with self._alone():
            return self._intake.new_sources()

    def undo(self) -> None:
        """Take back the newest cut, which was not committed."""
        with self._lock:
            self._intake.undo()

    @contextmanager
    def read_ahead(
        self,
        limit_rows: int,
        until_at_work: Callable[[], None],
        cut: Callable[[Cut], None] | None = None,
    ) -> Iterator[None]:
        """Read the next batch's event times in a thread while the tasks of this batch run.

        With `cut` the thread also cuts the next batch, if it is full, and calls `cut` with it.
        Errors are dropped: they come again, and are raised, when the loop cuts the next batch.
        """

        def look() -> None:
            until_at_work()  # sending the tasks comes first: Python runs one thread at a time
            with suppress(Exception):
                with self._alone():
                    if cut is None:
                        self._intake.look_ahead(limit_rows)
                        return
                    now = self._clock.now()
                    self._intake.discover(now)
                    ahead = self._intake.cut_ahead(limit_rows, now)
                if ahead is not None:
                    cut(ahead)

        looking = beside("tidegate-ahead", look)
        try:
            yield
        finally:
            if looking is not None:
                schedule.wait([looking])

    def standing(self) -> tuple[Extent | None, Holder | None]:
        """How much of the input is read, and which source holds the frontier back; after a cut."""
        with self._newest():
            return self._intake.standing()

    def silent(self, now: float, after_s: float) -> Holder | None:
        """The source that holds the frontier back and was silent for `after_s`; else None."""
        with self._newest():
            return silent_of(self._intake.inlets, now, after_s)

    def reaches(self) -> tuple[InletReach, ...]:
        """How far each URI of each stream is read; call after a cut."""
        with self._newest():
            return reaches_of(self._intake.inlets)

    def backlog(self) -> Backlog | None:
        """What has arrived and is not read yet; None if no source is live."""
        with self._newest():
            return self._intake.backlog()

    def saved(self, batch: int) -> tuple[tuple[Mapping[str, Any], ...], tuple[str, ...]]:
        """The sources' part of the manifest of a batch, and the files that it refers to."""
        with self._newest():
            # A batch that runs again leaves the file of its names alone: until the new manifest
            # is there, the old one counts and needs it as it is.
            writes = self._goal is None
            names = self._intake.write_names(self._store, batch, writes)
            return self._intake.saved(), names

    def forget(self) -> None:
        """Drop consumed input; called after a commit."""
        with self._newest():
            self._goal = None
            self._intake.answered()
            self._intake.forget()

    def close(self) -> None:
        for action in self._closing:
            action()

    def _attach(self, connector: Connector) -> None:
        self._closing.append(connector.close)
        connector.attach(self._store, self._options.follow, self._options.available_now)
        connector.tell(self._wake)
        self._closing.append(partial(connector.tell_no_more, self._wake))

    @contextmanager
    def _newest(self) -> Iterator[None]:
        """Lock the gate and show it as the newest batch left it, without what was cut ahead."""
        with self._alone(), self._intake.before_ahead():
            yield

    def _alone(self) -> AbstractContextManager[Any]:
        return schedule.current().hold(self._lock)


def _goal(before: Manifest, after: Manifest) -> Goal:
    return Goal.of(
        after.sources,
        rows=after.counters["rows_in"] - before.counters.get("rows_in", 0),
        frontier_us=after.frontier_us,
        finished=after.finished,
    )
