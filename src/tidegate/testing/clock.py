"""A clock that moves only when a test moves it, for tests of idleness and timing."""

from __future__ import annotations

from threading import Event


class ManualClock:
    """A clock for tests: `advance` moves it; sleeping moves it too, and returns at once."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds

    def wait(self, word: Event, seconds: float) -> None:
        if not word.is_set():
            self.sleep(seconds)

    def cpu(self) -> float:
        return self._now

    def utc_us(self) -> int:
        return int(self._now * 1e6)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
