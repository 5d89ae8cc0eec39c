"""Wall time, behind one small protocol, so that nothing else in the engine reads a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """What the engine may ask of time."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""

    def sleep(self, seconds: float) -> None:
        """Wait; a manual clock moves instead."""

    def wait(self, word: Event, seconds: float) -> None:
        """Sleep, but no longer than until the word is given."""

    def cpu(self) -> float:
        """Seconds that this process has used of a processor."""

    def utc_us(self) -> int:
        """The time of day, in microseconds since 1970; it may be set back."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, word: Event, seconds: float) -> None:
        word.wait(seconds)

    def cpu(self) -> float:
        return time.process_time()

    def utc_us(self) -> int:
        return time.time_ns() // 1000


def utc_now() -> datetime:
    """The time of day, for people to read; nothing is decided by it."""
    return datetime.now(UTC)
