"""The interface of those who keep books about batches: each is told of every batch that counts."""

from __future__ import annotations

from tidegate.driver.metric.metric import CommittedBatch


class BatchObserver:
    """Derive from it, and put the observer where it belongs in the tuple of `Books`.

    All calls come from the thread of the loop. What `committed` raises ends the run, but the batch
    counts: the next run goes on after it.
    """

    def started(self) -> None:
        """When `Loop.run` begins; a loop whose batches somebody else asks for never does."""

    def committed(self, batch: CommittedBatch) -> None:
        """After each batch that counts, once it is published; costs time of every batch."""

    def ended(self, failure: BaseException | None) -> None:
        """When `Loop.run` has ended, after `close`; what it raised, but for an abort asked for."""

    def close(self) -> None:
        """When the run ends, before the runner and the parts of the pipeline are closed."""
