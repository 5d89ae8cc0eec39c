"""Measures how long each step of a piece of work takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.clock import Clock


class Spans:
    """Wall time between marks, starting when this object is made, so that no time is left out."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._last = self.started = clock.now()
        self.spans_ms: dict[str, float] = {}

    @property
    def marked_s(self) -> float:
        """Seconds from the start to the last mark."""
        return self._last - self.started

    def mark(self, name: str) -> None:
        """Adds the time since the last mark to the span of this name."""
        now = self.clock.now()
        spent = (now - self._last) * 1e3
        self.spans_ms[name] = round(self.spans_ms.get(name, 0.0) + spent, 3)
        self._last = now

    def skip(self) -> None:
        """Leaves out the time since the last mark, because another object reports it."""
        self._last = self.clock.now()


def added(spans: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums several spans by name."""
    total: dict[str, float] = {}
    for one in spans:
        for name, value in one.items():
            total[name] = round(total.get(name, 0.0) + value, 3)
    return total
