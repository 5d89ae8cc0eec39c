"""Checks rows that a program appends to a gate, and sorts those that may wait for their turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.gate.frontier import lowered
from tidegate.gate.lateness import Int64s, in_order, late_mask, running_newest
from tidegate.gate.merge import SortedRun
from tidegate.schema import event_times


@dataclass(frozen=True)
class Appended:
    """The result of one `append`: how many rows were merged, and those that were given back.

    `late` rows came too late for the total order, `rejected` ones have no event time (see
    `tidegate.schema.event_times`). The caller owns both.
    """

    rows: int
    late: pa.Table
    rejected: pa.Table


@dataclass(frozen=True)
class Admission:
    """The decision on one append: the run that waits, the result, and the newest time after it."""

    run: SortedRun | None
    appended: Appended
    newest_us: int


def admit(
    table: pa.Table, time: str, newest_us: int, disorder_us: int, promised_us: int
) -> Admission:
    """Decide on rows that come, in their source's sequence, after tuples up to `newest_us`.

    Costs one pass over the times if they are in order, and a filter and a stable sort otherwise.
    Needs no lock but that of the source's appends: nobody else changes what it depends on.
    """
    times, valid = event_times(table.column(time))
    nothing = table.slice(0, 0)
    bound_us = max(lowered(newest_us, disorder_us), promised_us)
    if in_order(times, valid, max(newest_us, promised_us)):
        run = SortedRun.of(times, table, bound_us) if len(times) else None
        newest_us = int(times[-1]) if len(times) else newest_us
        return Admission(run, Appended(len(times), nothing, nothing), newest_us)
    late = late_mask(times, valid, newest_us, disorder_us, promised_us)
    kept = valid & ~late
    run = _sorted_run(times[kept], table.filter(pa.array(kept)), bound_us)
    appended = Appended(
        int(kept.sum()),
        table.filter(pa.array(late)) if late.any() else nothing,
        nothing if valid.all() else table.filter(pa.array(~valid)),
    )
    return Admission(run, appended, int(running_newest(times, valid, newest_us)[-1]))


def _sorted_run(times: Int64s, table: pa.Table, bound_us: int) -> SortedRun | None:
    """A run of tuples by time; those of one time stay in their sequence."""
    if not len(times):
        return None
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        times, table = times[order], table.take(pa.array(order))
    return SortedRun.of(times, table, bound_us)
