"""How often batches start and how many rows they may have: as asked for, or as a policy has it."""

from __future__ import annotations

from tidegate.driver.batch_limit import BatchLimit
from tidegate.model.observation import BatchCadence


class RunCadence:
    """The cadence of a run; the policy may change it between two batches. Owned by the loop.

    A restart begins with what the user asked for: no row depends on it, so nothing is recorded.
    """

    def __init__(self, trigger_s: float | None, limit: BatchLimit) -> None:
        self.limit = limit
        self.own = BatchCadence(trigger_s or 0.0, limit.asked_rows)
        """What the user asked for."""
        self._trigger_s = self.own.trigger_s

    @property
    def trigger_s(self) -> float:
        """The least time between the starts of two batches; 0 without one."""
        return self._trigger_s

    @property
    def now(self) -> BatchCadence:
        """That of the next batch."""
        return BatchCadence(self._trigger_s, self.limit.asked_rows)

    def change(self, cadence: BatchCadence | None) -> None:
        """Have another one from the next batch on, None for what the user asked for.

        What fits into memory still limits the rows of a batch.
        """
        cadence = cadence or self.own
        self._trigger_s = cadence.trigger_s
        rows = self.own.rows if cadence.rows is None else cadence.rows
        assert rows is not None, "batches of a run have a limit"
        if rows != self.limit.asked_rows:
            self.limit.allow(rows)
