"""A query as a page sees it: one of this process, or a checkpoint that another one runs or ran."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tidegate.clock import Clock, utc_now
from tidegate.control.client import ask
from tidegate.control.command import answer
from tidegate.driver.exposition.observer import MetricsObserver
from tidegate.driver.journal.files import read_lines, read_status
from tidegate.driver.journal.journal import ALIVE_S
from tidegate.driver.journal.picture import picture_of
from tidegate.driver.loop import Loop
from tidegate.errors import CheckpointError, TidegateError
from tidegate.json_text import json_text
from tidegate.state.store import Store

KILLED = "ended without a word"
"""The state of a run that says it runs, and that nobody answers for."""

SILENT_S = 4 * ALIVE_S
"""How long a run on another host may have written nothing."""

PICTURE_S = 1.0
"""How old a picture may be that several readers share."""

_RUNNING = re.compile("running|paused")


class WatchedQuery(Protocol):
    """What a page may ask of a query; any thread may."""

    title: str
    checkpoint: str | None

    def picture(self) -> Mapping[str, Any]:
        """Its status, its plan, its buckets; at most PICTURE_S old."""

    def batches(self, after: int, most: int) -> list[bytes]:
        """Records of its newest batches after one, oldest first, each a line of JSON."""

    def wait(self, after: int, seconds: float) -> None:
        """Block until there may be a batch after one, or the time is over."""

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Have it do what a question of `tidegate ctl` asks; raises what it refuses."""


class LoopQuery:
    """A query of this process, made before it begins."""

    def __init__(self, loop: Loop, title: str, clock: Clock) -> None:
        self.title = title
        self.checkpoint = loop.store.location if loop.books.journal.written else None
        self.loop = loop
        self.metrics = MetricsObserver(loop)
        loop.books.observe(self.metrics)
        self._pictures = _Recent(clock)

    def picture(self) -> Mapping[str, Any]:
        return self._pictures.get(lambda: picture_of(self.loop))

    def runs(self) -> bool:
        """Whether it has not ended."""
        return is_running({"state": self.loop.books.journal.state})

    def batches(self, after: int, most: int) -> list[bytes]:
        found = self.loop.books.journal.newest(after)[-most:]
        return [json_text(record.as_dict()).encode() for record in found]

    def wait(self, after: int, seconds: float) -> None:
        self.loop.books.journal.wait(after, seconds)

    def ask(self, question: Mapping[str, Any]) -> Any:
        self._pictures.forget()
        return answer(self.loop, question)


class CheckpointQuery:
    """The query of a checkpoint, from its journal; asked over its control socket, where it runs.

    What a page shows of it is some seconds old.
    """

    def __init__(self, location: str, clock: Clock) -> None:
        self._store = Store.open(location)
        self._clock = clock
        self._pictures = _Recent(clock)
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
        return self._pictures.get(self._picture)

    def batches(self, after: int, most: int) -> list[bytes]:
        return read_lines(self._store.files, after)[-most:]

    def wait(self, after: int, seconds: float) -> None:
        del after
        self._clock.sleep(seconds)

    def ask(self, question: Mapping[str, Any]) -> Any:
        self._pictures.forget()
        return ask(self._store.location, question)

    def _picture(self) -> Mapping[str, Any]:
        found = read_status(self._store.files) or {}
        if not _RUNNING.match(str(found.get("state", ""))):
            return found
        try:
            return {**found, **ask(self._store.location, {"command": "status"})}
        except TidegateError as error:
            again = read_status(self._store.files) or {}  # it may just have ended
            return {**again, "state": KILLED} if self._killed(again, error) else again

    def _killed(self, told: Mapping[str, Any], error: TidegateError) -> bool:
        """Whether a run that says it runs does not: nobody answers on its host, or for long."""
        elsewhere = not self._store.files.local or "on this host" in error.requirement
        silent_s = utc_now().timestamp() - told.get("told_at", 0.0)
        return is_running(told) and (not elsewhere or silent_s > SILENT_S)


class _Recent:
    """A picture that several readers share while it is recent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._made: tuple[float, Mapping[str, Any]] | None = None

    def get(self, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        now, made = self._clock.now(), self._made
        if made is None or now - made[0] >= PICTURE_S:
            made = self._made = now, make()
        return made[1]

    def forget(self) -> None:
        """The next is to be a new one."""
        self._made = None


def is_running(picture: Mapping[str, Any]) -> bool:
    """Whether there is somebody to ask."""
    return _RUNNING.match(str(picture.get("state", ""))) is not None
