"""How many rows the next batch may have, between what the user asked for and what fits."""

from __future__ import annotations

MOST_TRIES = 10
"""So often a batch is cut to half before the run fails."""

STEADY = 16
"""After so many batches in a row that fit, the next may have twice as many rows again."""


class BatchLimit:
    """Starts with what was asked for, is halved where memory did not suffice, and grows again.

    The output is the same for any cut, so it may change at any batch.
    """

    def __init__(self, asked_rows: int) -> None:
        self.rows = asked_rows
        self._asked_rows = asked_rows
        self._tries = 0
        self._fitted = 0

    @property
    def tries(self) -> int:
        """How often the batch at hand was cut smaller."""
        return self._tries

    def ask(self, rows: int) -> None:
        """Ask for another number from now on."""
        self.rows = self._asked_rows = rows

    def shrink(self, rows: int) -> bool:
        """After a batch of so many rows did not fit; False where it is not to be tried again."""
        if rows <= 1 or self._tries >= MOST_TRIES:
            return False
        self._tries += 1
        self._fitted = 0
        self.rows = min(self.rows, rows) // 2
        return True

    def fitted(self) -> None:
        """After a batch did."""
        self._tries = 0
        self._fitted += 1
        if self._fitted >= STEADY and self.rows < self._asked_rows:
            self._fitted = 0
            self.rows = min(2 * self.rows, self._asked_rows)
