"""How many rows the next batch may have, by what the user asked for, what fits, and what comes out.

The output is the same for any cut, so the limit may change at any batch.
"""

from __future__ import annotations

MOST_TRIES = 10
"""So often a batch is cut to half before the run fails."""

STEADY = 16
"""After so many batches in a row that fit, the next may have twice as many rows again."""

FIRST_ROWS = 8_192
"""The first batch of a query whose rows may multiply: all pairs of so many are some millions."""

MOST_OUTPUT_ROWS = 8_000_000
"""About how many rows a batch should give, of all its subqueries."""

_GROWTH = 4


class BatchLimit:
    """Starts with what was asked for, is halved where memory did not suffice, and grows again.

    With `by_output` it also follows how many rows come out for a row that goes in, and starts with
    at most `first_rows`, because that is not known yet. Batches that the user has sized are not cut
    by their output: what is to happen at a batch is said by its number.
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
    def tries(self) -> int:
        """How often the batch at hand was cut smaller."""
        return self._tries

    @property
    def follows_output(self) -> bool:
        """Whether what comes out of the batch at hand may change the limit of the next."""
        return self._output_rows < self._fitting_rows

    def ask(self, rows: int) -> None:
        """Ask for another number from now on."""
        self._asked_rows = self._fitting_rows = self._output_rows = rows

    def allow(self, rows: int) -> None:
        """Have at most so many from now on; fewer where what comes out of a row is many."""
        if not self._by_output:
            return self.ask(rows)
        self._asked_rows = self._fitting_rows = rows
        self._output_rows = min(self._output_rows, rows)

    def shrink(self, rows: int) -> bool:
        """After a batch of so many rows did not fit; False where it is not to be tried again."""
        if rows <= 1 or self._tries >= MOST_TRIES:
            return False
        self._tries += 1
        self._fitted = 0
        self._fitting_rows = min(self.rows, rows) // 2
        return True

    def fitted(self, rows: int = 0, output_rows: int = 0) -> None:
        """After a batch did: so many rows went in, and so many came out."""
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
