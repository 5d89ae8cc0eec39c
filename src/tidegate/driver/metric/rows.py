"""Counts the rows of a query: those it reads, emits and leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.driver.metric.metric import CommittedBatch, RunMetric, Where, counted, counter

if TYPE_CHECKING:  # the commit counts what is declared here
    from tidegate.driver.checkpoint.commit import BatchWork

_SHOWN = Where.ROWS | Where.VIEW


def _in(work: BatchWork) -> int:
    return work.cut.rows - work.cut.absent_rows


def _outside(work: BatchWork) -> int | None:
    return sum(part.slice.outside_rows for part in work.cut.parts) or None


def _out(work: BatchWork) -> int:
    return sum(output.count for output in work.staged.outputs)


def _late(work: BatchWork) -> int:
    return sum(rows.num_rows for rows in work.staged.outputs[0].late.values())


def _rejected(work: BatchWork) -> int:
    rejected = work.staged.outputs[0].rejected
    return 0 if rejected is None else rejected.num_rows


def _shed(work: BatchWork) -> int | None:
    return counted("shed")(work) or None


def _by_output(batch: CommittedBatch) -> dict[str, int]:
    """Where outputs have names."""
    pairs = zip(batch.plan.targets, batch.work.staged.outputs, strict=True)
    return {target.name: output.count for target, output in pairs if target.name is not None}


_LEFT_OUT: dict[str, Any] = {"where": _SHOWN, "style": "yellow"}

METRICS = (
    counter(
        "rows_in",
        "rows in",
        _in,
        "Rows read from all sources, also late and rejected ones, since the checkpoint began.",
        absent=0,
        where=_SHOWN,
        zero=_SHOWN,
    ),
    counter(
        "rows_out",
        "rows out",
        _out,
        "Result rows of all outputs, since the checkpoint began.",
        absent=0,
        where=_SHOWN,
        zero=_SHOWN,
    ),
    counter(
        "rows_late",
        "late",
        _late,
        "Rows that came later than DISORDER allows, since the checkpoint began.",
        absent=0,
        zero=Where.ROWS,
        part_of="rows_in",
        **_LEFT_OUT,
    ),
    counter(
        "rows_rejected",
        "rejected",
        _rejected,
        "Rows that could not be read or had no event time, since the checkpoint began.",
        absent=0,
        zero=Where.ROWS,
        part_of="rows_in",
        **_LEFT_OUT,
    ),
    # No share of the rows: they are left to another source, and are no rows of the stream.
    counter(
        "rows_outside",
        "outside UNTIL",
        _outside,
        "Rows of a history from UNTIL on, and of its topic before it, since the checkpoint began.",
        **_LEFT_OUT,
    ),
    # No share of the rows: what is read twice may be shed twice.
    counter(
        "rows_shed",
        "shed",
        _shed,
        "Rows that WITH SHED has dropped, since the checkpoint began.",
        **_LEFT_OUT,
    ),
    counter(
        "groups_dropped",
        "groups dropped",
        counted("groups_dropped"),
        "Groups of windows that WITH SHED BY CONCEPT TOTAL has dropped, since the checkpoint "
        "began.",
        **_LEFT_OUT,
    ),
    counter(
        "tuples_dropped",
        "of groups dropped",
        counted("tuples_dropped"),
        "Tuples of the groups that WITH SHED BY CONCEPT TOTAL has dropped, since the checkpoint "
        "began; they are among those shed.",
        **_LEFT_OUT,
    ),
    counter(
        "batches",
        "batches",
        lambda work: 1,
        "Batches that were committed, since the checkpoint began.",
        absent=0,
    ),
    RunMetric("output_rows", _by_output),
)
