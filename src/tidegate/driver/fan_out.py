"""Says once where a subquery gives very many rows for each that it takes."""

from __future__ import annotations

import logging

from tidegate.driver.commit import BatchWork

MANY_ROWS = 1_000
LEAST_ROWS = 1_000_000
"""A batch with fewer rows is no trouble, whatever they come from."""

_log = logging.getLogger(__name__)


class FanOutWatch:
    """Looks at the batches of a run until it has warned once."""

    def __init__(self) -> None:
        self._told = False

    def committed(self, work: BatchWork) -> None:
        """After a batch: warn where its rows are many for those that came in."""
        for job, found in zip(work.jobs, work.outcomes, strict=True):
            rows = sum(o.counts["outputs"] for o in found)
            taken = max(sum(o.counts["taken"] for o in found), 1)
            if not self._told and rows >= max(LEAST_ROWS, MANY_ROWS * taken):
                self._told = True
                _log.warning(
                    "%s: batch %d gave %d rows of %d, %d for each. Expect more as windows fill: "
                    "add a condition, or shorten the windows, unless you need them all. "
                    "--batch-rows keeps batches small; explain tells what to expect.",
                    job.subquery.name,
                    job.batch,
                    rows,
                    taken,
                    rows // taken,
                )
