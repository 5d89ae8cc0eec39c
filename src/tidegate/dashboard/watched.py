"""The interface of a query on a page, and the query of another process, read from its checkpoint.

Imports nothing of the engine, so that `tidegate dashboard` starts at once. A query of this process
is a `LoopQuery`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tidegate.clock import Clock, utc_now
from tidegate.control.client import ask
from tidegate.driver.journal.files import ALIVE_S, read_status
from tidegate.driver.journal.reader import JournalReader
from tidegate.errors import CheckpointError, TidegateError
from tidegate.state.store import Store

if TYPE_CHECKING:
    from tidegate.driver.exposition.observer import MetricsObserver

KILLED = "ended without a word"
"""The state of a run whose journal says that it runs, although its process is gone."""

SILENT_S = 4 * ALIVE_S
"""A run on another host counts as gone if it has written nothing for so long."""

MOST_BATCHES = 10_000
"""The most batches of a query that a page gets: the newest."""

_RUNNING = re.compile("running|paused")


class WatchedQuery(Protocol):
    """What a page asks of a query; called by any thread."""

    title: str
    checkpoint: str | None

    def picture(self) -> Mapping[str, Any]:
        """The status, plan and buckets of the query as they are now."""

    def batches(self, after: int, most: int) -> list[bytes]:
        """The first `most` records after a batch, oldest first, each a line of JSON.

        Only the newest MOST_BATCHES records are there.
        """

    def wait(self, after: int, seconds: float) -> None:
        """Block until there may be a batch after `after`, or the time is over."""

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Run a command of `tidegate ctl`; raises what the query refuses."""

    def metrics(self) -> MetricsObserver | None:
        """The observer for `/metrics`; None if the query has ended or is of another process."""


class CheckpointQuery:
    """The query of a checkpoint: shown from its journal, commanded over its control socket.

    What a page shows of it may be some seconds old.
    """

    def __init__(self, location: str, clock: Clock) -> None:
        self._store = Store.open(location)
        self._clock = clock
        self._journal = JournalReader(self._store.files)
        self.checkpoint: str | None = self._store.location
        self.title = self._store.location.rstrip("/").rpartition("/")[2]
        if not self._store.files.is_folder() or read_status(self._store.files) is None:
            raise CheckpointError(
                self._store.location,
                "must be a checkpoint with the journal of a run",
                "none",
                "Give the folder that --checkpoint names, of a query that has run here since.",
            )

    def picture(self) -> Mapping[str, Any]:
        found = read_status(self._store.files) or {}
        if not is_running(found):
            return found
        try:
            return {**found, **ask(self._store.location, {"command": "status"})}
        except TidegateError as error:
            again = read_status(self._store.files) or {}  # it may just have ended
            return {**again, "state": KILLED} if self._killed(again, error) else again

    def batches(self, after: int, most: int) -> list[bytes]:
        return self._journal.after(max(after, self._journal.newest() - MOST_BATCHES), most)

    def wait(self, after: int, seconds: float) -> None:
        del after
        self._clock.sleep(seconds)

    def ask(self, question: Mapping[str, Any]) -> Any:
        return ask(self._store.location, question)

    def metrics(self) -> MetricsObserver | None:
        return None

    def _killed(self, told: Mapping[str, Any], error: TidegateError) -> bool:
        """Whether a run that says it runs does not: nobody answers on its host, or for long."""
        elsewhere = not self._store.files.local or "on this host" in error.requirement
        silent_s = utc_now().timestamp() - told.get("told_at", 0.0)
        return is_running(told) and (not elsewhere or silent_s > SILENT_S)


def is_running(picture: Mapping[str, Any]) -> bool:
    """Whether there is somebody to ask."""
    return _RUNNING.match(str(picture.get("state", ""))) is not None
