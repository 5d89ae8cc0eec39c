"""Turns tuples into the rows of a port, in the order in which they were decided.

Most tuples are decided at their own time, and their rows come in the total order (`tuple_rows`). A
tuple that waits for others is decided later: its row has the time of that instant (`decided_rows`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.collect.trigger import TRIGGER, TriggerOrder, triggered
from tidegate.operate.kernels.order import Ints
from tidegate.operate.port import Port
from tidegate.schema import TIME

OWN_TIME = "own_ts"
"""The column with the tuple's own time, which is at or before the instant of its decision."""

DECISION_ORDER = TriggerOrder("instant of the decision, ts, input, source, position")


def in_total_order(tuples: pa.Table) -> pa.Table:
    """Sort tuples by the total order; nothing is copied where they are sorted already."""
    columns = [ints(tuples, name) for name in ORDER]
    later = np.zeros(max(tuples.num_rows - 1, 0), np.bool_)
    # Compares neighbours lexicographically, beginning with the least significant column.
    for column in reversed(columns):
        before, after = column[:-1], column[1:]
        later = (before > after) | ((before == after) & later)
    if not later.any():
        return tuples
    return tuples.take(pa.array(np.lexsort(columns[::-1])))


def tuple_rows(port: Port, tuples: pa.Table) -> pa.Table:
    """The rows of a port for tuples in the total order, with hidden columns for a merge.

    Columns of the tuples whose names begin with TRIGGER order the rows that one tuple has given.
    """
    times = tuples.column(TS).cast(TIME)
    rows = port.filtered(tuples.set_column(tuples.schema.get_field_index(TS), TS, times))
    triggers = {TRIGGER + name: rows.column(name) for name in ORDER}
    triggers |= {name: rows.column(name) for name in rows.column_names if name.startswith(TRIGGER)}
    return triggered({port.time: rows.column(TS)} | port.selected(rows), pa.table(triggers))


def decided_rows(port: Port, tuples: pa.Table, instants: Ints) -> pa.Table:
    """The rows of a port for tuples that were decided at these instants, in DECISION_ORDER."""
    order = [ints(tuples, name) for name in reversed(ORDER)]
    places = pa.array(np.lexsort([*order, instants]))
    tuples, instants = tuples.take(places), instants[places.to_numpy()]
    own = tuples.column(TS).cast(TIME)
    rows = tuples.set_column(tuples.schema.get_field_index(TS), TS, pa.array(instants, TIME))
    rows = port.filtered(rows.append_column(OWN_TIME, own))
    triggers = pa.table(
        {
            f"{TRIGGER}at": rows.column(TS).cast(pa.int64()),
            f"{TRIGGER}ts": rows.column(OWN_TIME).cast(pa.int64()),
            **{TRIGGER + name: rows.column(name) for name in ORDER[1:]},
        }
    )
    return triggered({port.time: rows.column(TS)} | port.selected(rows), triggers)
