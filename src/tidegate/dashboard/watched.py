"""A query as a page sees it; here the checkpoint of one that another process runs or ran.

Imports nothing of the engine: to look at a journal is the work of a moment. A query of this process
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
"""The state of a run that says it runs, and that nobody answers for."""

SILENT_S = 4 * ALIVE_S
"""How long a run on another host may have written nothing."""

MOST_BATCHES = 10_000
"""So many of the newest batches are told of one query."""

_RUNNING = re.compile("running|paused")


class WatchedQuery(Protocol):
    """What a page may ask of a query; any thread may."""

    title: str
    checkpoint: str | None

    def picture(self) -> Mapping[str, Any]:
        """Its status, its plan, its buckets, as they are now."""

    def batches(self, after: int, most: int) -> list[bytes]:
        """The first `most` records after a batch, oldest first, each a line of JSON.

        What is before the newest MOST_BATCHES is left out.
        """

    def wait(self, after: int, seconds: float) -> None:
        """Block until there may be a batch after one, or the time is over."""

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Have it do what a question of `tidegate ctl` asks; raises what it refuses."""

    def metrics(self) -> MetricsObserver | None:
        """Who counts for `/metrics`; None where it has ended, or another process counts."""


class CheckpointQuery:
    """The query of a checkpoint, from its journal; asked over its control socket, where it runs.

    What a page shows of it is some seconds old.
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
