"""The interface of observers, which see every committed batch of a run."""

from __future__ import annotations

from tidegate.driver.metric.metric import CommittedBatch


class BatchObserver:
    """Base class of observers; put a new one at its place in the tuple of `Books`.

    The thread of the loop makes all calls. An exception from `committed` ends the run, but the
    batch counts: the next run continues after it.
    """

    def started(self) -> None:
        """Called when `Loop.run` begins; never for a loop that is driven by `step`."""

    def committed(self, batch: CommittedBatch) -> None:
        """Called after each batch was published. It must be fast: every batch waits for it."""

    def ended(self, failure: BaseException | None) -> None:
        """Called when `Loop.run` has ended, after `close`, with its error; None after an abort."""

    def close(self) -> None:
        """Called when the run ends, before the runner and the pipeline are closed."""
