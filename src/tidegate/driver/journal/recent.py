"""Holds the newest batches of a run in memory, for those who look while it goes on."""

from __future__ import annotations

import threading
from collections import deque

from tidegate.driver.journal.record import BatchRecord

KEPT = 2_048
KEPT_BYTES = 8 * 2**20
"""So many of the newest batches are in memory, and about so much of it they may take."""


class RecentBatches:
    """One thread adds, any may read.

    Holds KEPT batches, or as many as take KEPT_BYTES: with sixty-four instances some hundred.
    """

    def __init__(self) -> None:
        self.most = KEPT
        self._kept: deque[BatchRecord] = deque()
        self._bytes = 0
        self._news = threading.Condition()
        self._over = False

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, record: BatchRecord) -> None:
        """Keep one more, and let go of the oldest that are too many."""
        with self._news:
            self._kept.append(record)
            self._bytes += record.size_bytes
            while len(self) > self.most or (self._bytes > KEPT_BYTES and len(self) > 1):
                self._bytes -= self._kept.popleft().size_bytes
            self._news.notify_all()

    def end(self) -> None:
        """No more will come; nobody waits on."""
        with self._news:
            self._over = True
            self._news.notify_all()

    def after(self, batch: int = -1, most: int | None = None) -> list[BatchRecord]:
        """Those after a batch, oldest first; the first `most` of them."""
        found: list[BatchRecord] = []
        with self._news:
            for record in reversed(self._kept):
                if record.batch <= batch:
                    break
                found.append(record)
        return found[::-1][:most]

    def wait(self, after: int, seconds: float) -> None:
        """Block until there is a batch after one, the run is over, or the time is."""
        with self._news:
            self._news.wait_for(
                lambda: self._over or (self._kept and self._kept[-1].batch > after), seconds
            )
