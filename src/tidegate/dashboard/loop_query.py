"""A query of this process, for the live page."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tidegate.control.command import answer
from tidegate.dashboard.query_view import is_running
from tidegate.driver.exposition.observer import MetricsObserver
from tidegate.driver.journal.picture import picture_of
from tidegate.driver.loop import Loop
from tidegate.json_text import json_text


class LoopQuery:
    """A query of this process; created before it starts. Metrics cost its batches nothing until
    somebody reads them.
    """

    def __init__(self, loop: Loop, title: str) -> None:
        self.title = title
        self.checkpoint = loop.store.location if loop.books.journal.written else None
        self._loop = loop
        self._metrics: MetricsObserver | None = None
        self._lock = threading.Lock()

    def picture(self) -> Mapping[str, Any]:
        return picture_of(self._loop)

    def batches(self, after: int, most: int) -> list[bytes]:
        found = self._loop.books.journal.recent.after(after, most)
        return [json_text(record.as_dict()).encode() for record in found]

    def wait(self, after: int, seconds: float) -> None:
        self._loop.books.journal.recent.wait(after, seconds)

    def ask(self, question: Mapping[str, Any]) -> Any:
        return answer(self._loop, question)

    def metrics(self) -> MetricsObserver | None:
        if not is_running({"state": self._loop.state}):
            return None
        with self._lock:
            if self._metrics is None:
                self._metrics = MetricsObserver(self._loop)
                self._metrics.begin()
            return self._metrics
