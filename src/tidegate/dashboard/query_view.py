"""Shows a query to the live page: the protocol, and its version for a query of another process.

This module imports nothing of the engine, so that a look at a journal starts fast. A query of this
process is a `LoopQuery`.
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
"""The state of a run whose journal says that it runs although nobody answers."""

SILENT_S = 4 * ALIVE_S
"""How long a run on another host may write nothing before it counts as killed."""

MOST_BATCHES = 10_000
"""The newest batches of a query that the page can read."""

_RUNNING = re.compile("running|paused")


class WatchedQuery(Protocol):
    """A query on the page; thread-safe."""

    title: str
    checkpoint: str | None

    def picture(self) -> Mapping[str, Any]:
        """Its status, plan and buckets now."""

    def batches(self, after: int, most: int) -> list[bytes]:
        """The first `most` records after a batch, oldest first, each a line of JSON.

        Only the newest MOST_BATCHES are available.
        """

    def wait(self, after: int, seconds: float) -> None:
        """Blocks until there may be a batch after this one, or the time is over."""

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Executes a command of `tidegate ctl`; raises its error."""

    def metrics(self) -> MetricsObserver | None:
        """Its metrics for `/metrics`; None if it has ended or runs in another process."""


class CheckpointQuery:
    """The query of a checkpoint, read from its journal; commands go to its control socket if it
    runs.

    What the page shows may be some seconds old.
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
        """Whether a run only claims to run: nobody answers here, or it has long been silent."""
        elsewhere = not self._store.files.local or "on this host" in error.requirement
        silent_s = utc_now().timestamp() - told.get("told_at", 0.0)
        return is_running(told) and (not elsewhere or silent_s > SILENT_S)


def is_running(picture: Mapping[str, Any]) -> bool:
    """Whether the query can be asked."""
    return _RUNNING.match(str(picture.get("state", ""))) is not None
