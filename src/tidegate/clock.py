"""Time behind one small protocol; nothing else in the engine reads a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """What the engine may ask about time."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; only differences are meaningful."""

    def sleep(self, seconds: float) -> None:
        """Waits; a manual clock advances instead."""

    def wait(self, word: Event, seconds: float) -> None:
        """Sleeps until the event is set, but no longer than this."""

    def cpu(self) -> float:
        """Processor seconds that this process has used."""

    def utc_us(self) -> int:
        """The time of day in microseconds since 1970; it may jump backwards."""


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
    """The time of day, for people; no decision depends on it."""
    return datetime.now(UTC)
