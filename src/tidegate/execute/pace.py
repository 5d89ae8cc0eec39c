"""How long small batches take in one task, between the last ones and the choice for the next."""

from __future__ import annotations

from dataclasses import dataclass

SHORT_S = 0.1
"""Work of so many seconds is not worth another task, let alone another job."""

_FORGOTTEN = 16
"""After so many batches that were thought too long, one is tried again: the first ones compile."""


@dataclass
class Pace:
    """What one task took for a whole batch, last time, and how many batches were not given to one.

    Before the first time a batch is thought to be short.
    """

    seconds: float = 0.0
    rows: int = 1
    passed: int = 0

    def short(self, rows: int) -> bool:
        """Whether so many rows are likely to be short work."""
        expected = self.seconds * max(1.0, rows / (2 * self.rows))
        if expected <= SHORT_S or self.passed == _FORGOTTEN:
            return True
        self.passed += 1
        return False

    def note(self, rows: int, seconds: float) -> None:
        """One task has run a batch."""
        self.rows, self.seconds, self.passed = max(rows, 1), seconds, 0
