"""Decides how many rows the next batch may have: by the user's wish, by memory, and by the output.

The limit may change at any batch, because the output is the same for any cut.
"""

from __future__ import annotations

MOST_TRIES = 10
"""A batch is halved at most so often before the run fails."""

STEADY = 16
"""After so many batches in a row that fit, a halved limit is doubled again."""

FIRST_ROWS = 8_192
"""The rows of the first batch of a query that may multiply rows: all their pairs are millions."""

MOST_OUTPUT_ROWS = 8_000_000
"""About how many rows all subqueries of a batch together should emit at most."""

_GROWTH = 4


class BatchLimit:
    """The limit: starts as asked for, is halved if memory runs out, and grows again.

    With `by_output` it also follows the output rows per input row. That ratio is unknown at first,
    so it then starts with at most `first_rows`. Do not use `by_output` if the user has set the size
    of batches: options such as `--switch` name batches by their numbers.
    """

    def __init__(
        self, asked_rows: int, *, by_output: bool = False, first_rows: int | None = None
    ) -> None:
        self._asked_rows = asked_rows
        self._fitting_rows = asked_rows
        self._by_output = by_output
        self._output_rows = asked_rows
        if by_output and first_rows is not None:
            self._output_rows = min(first_rows, asked_rows)
        self._tries = 0
        self._fitted = 0

    @property
    def rows(self) -> int:
        """The rows of the next batch."""
        return min(self._fitting_rows, self._output_rows)

    @property
    def asked_rows(self) -> int:
        """What batches may have if it fits and not too much comes out."""
        return self._asked_rows

    @property
    def follows_output(self) -> bool:
        """Whether the output of the current batch may change the limit of the next."""
        return self._output_rows < self._fitting_rows

    def ask(self, rows: int) -> None:
        """Set another number from now on."""
        self._asked_rows = self._fitting_rows = self._output_rows = rows

    def allow(self, rows: int) -> None:
        """Have at most so many from now on; fewer where what comes out of a row is many."""
        if not self._by_output:
            return self.ask(rows)
        self._asked_rows = self._fitting_rows = rows
        self._output_rows = min(self._output_rows, rows)

    def shrink(self, rows: int) -> bool:
        """Halve the limit after `rows` rows did not fit; return False to give up."""
        if rows <= 1 or self._tries >= MOST_TRIES:
            return False
        self._tries += 1
        self._fitted = 0
        self._fitting_rows = min(self.rows, rows) // 2
        return True

    def fitted(self, rows: int = 0, output_rows: int = 0) -> None:
        """Note that a batch fitted, with its input and output rows."""
        self._tries = 0
        self._fitted += 1
        if self._fitted >= STEADY and self._fitting_rows < self._asked_rows:
            self._fitted = 0
            self._fitting_rows = min(2 * self._fitting_rows, self._asked_rows)
        if self._by_output and rows:
            self._follow(rows, output_rows)

    def _follow(self, rows: int, output_rows: int) -> None:
        allowed = max(rows * MOST_OUTPUT_ROWS // max(output_rows, 1), 1)
        if allowed < rows:
            self._output_rows = allowed
        else:  # a small batch says little: it never lowers the limit
            grown = min(_GROWTH * rows, allowed, self._asked_rows)
            self._output_rows = max(self._output_rows, grown)
