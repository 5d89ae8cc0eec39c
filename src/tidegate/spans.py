"""Measures what a piece of work spends its time on, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.clock import Clock


class Spans:
    """Wall time between the marks of a batch, from when this is made: nothing between is left out.

    `started` is when it was made, on the clock.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._last = self.started = clock.now()
        self.spans_ms: dict[str, float] = {}

    @property
    def marked_s(self) -> float:
        """The time from the start to the last mark: the sum of all spans."""
        return self._last - self.started

    def mark(self, name: str) -> None:
        """The time since the last mark was spent on this, as may have been some before."""
        now = self.clock.now()
        spent = (now - self._last) * 1e3
        self.spans_ms[name] = round(self.spans_ms.get(name, 0.0) + spent, 3)
        self._last = now

    def skip(self) -> None:
        """The time since the last mark is told elsewhere."""
        self._last = self.clock.now()


def added(spans: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sum of several spans by name."""
    total: dict[str, float] = {}
    for one in spans:
        for name, value in one.items():
            total[name] = round(total.get(name, 0.0) + value, 3)
    return total
