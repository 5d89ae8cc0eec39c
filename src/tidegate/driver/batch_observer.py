"""The interface of those who keep books about batches: each is told of every batch that counts."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.driver.commit import BatchWork
from tidegate.driver.latency import Quantiles
from tidegate.driver.metrics import BatchReport
from tidegate.gate.backlog import Backlog
from tidegate.spans import Spans
from tidegate.state.manifest import Manifest


@dataclass
class CommittedBatch:
    """A batch that is committed and published, on its way through the observers of a run.

    The fields with a default are filled in by observers, for those that come after them in the
    tuple. `replaced` is the manifest that the batch had before it ran again.
    """

    previous: Manifest
    manifest: Manifest
    work: BatchWork
    started: float
    spans: Spans
    committed_at: float
    replaced: Manifest | None = None
    latency: Quantiles | None = None
    backlog: Backlog | None = None
    report: BatchReport | None = None

    @property
    def reported(self) -> BatchReport:
        """The report, for observers that stand behind the one that makes it."""
        assert self.report is not None, "an observer stands before the report it reads"
        return self.report

    @property
    def ended(self) -> float:
        """When the batch ended, on the clock."""
        return self.started + self.reported.start_s + self.reported.seconds


class BatchObserver:
    """Derive from it, and put the observer where it belongs in the tuple of `Books`.

    All calls come from the thread of the loop. What `committed` raises ends the run, but the batch
    counts: the next run goes on after it.
    """

    def committed(self, batch: CommittedBatch) -> None:
        """After each batch that counts, once it is published; costs time of every batch."""

    def close(self) -> None:
        """When the run ends, before the runner and the parts of the pipeline are closed."""
