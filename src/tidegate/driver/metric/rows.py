"""Counts the rows of a query: those it reads, emits and leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.driver.metric.metric import RunMetric, Where, counted, counter

if TYPE_CHECKING:  # the commit counts what is declared here
    from tidegate.driver.commit import BatchWork

_SHOWN = Where.ROWS | Where.VIEW


def _late(work: BatchWork) -> int:
    return sum(rows.num_rows for rows in work.staged.outputs[0].late.values())


def _rejected(work: BatchWork) -> int:
    rejected = work.staged.outputs[0].rejected
    return 0 if rejected is None else rejected.num_rows


ROWS_IN = counter("rows_in", "rows in", lambda work: work.cut.rows, where=_SHOWN, zero=_SHOWN)
ROWS_OUT = counter(
    "rows_out",
    "rows out",
    lambda work: sum(output.count for output in work.staged.outputs),
    where=_SHOWN,
    zero=_SHOWN,
)
LATE = counter(
    "rows_late",
    "late",
    _late,
    where=_SHOWN,
    zero=Where.ROWS,
    style="yellow",
    part_of=ROWS_IN.name,
)
REJECTED = counter(
    "rows_rejected",
    "rejected",
    _rejected,
    where=_SHOWN,
    zero=Where.ROWS,
    style="yellow",
    part_of=ROWS_IN.name,
)
# No share of the rows: what is read twice may be shed twice.
SHED = counter(
    "rows_shed", "shed", lambda work: counted("shed")(work) or None, where=_SHOWN, style="yellow"
)
BATCHES = counter("batches", "batches", lambda work: 1)
OUTPUT_ROWS = RunMetric(
    "output_rows",
    lambda batch: {
        target.name: output.count
        for target, output in zip(batch.plan.targets, batch.work.staged.outputs, strict=True)
        if target.name is not None
    },
)
"""Rows by output, where outputs have names."""
