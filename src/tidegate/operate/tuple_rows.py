"""Puts tuples into the total order, and makes the rows of a port of them in that order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.collect.trigger import TRIGGER, triggered
from tidegate.operate.port import Port
from tidegate.schema import TIME


def in_total_order(tuples: pa.Table) -> pa.Table:
    """Tuples in the total order; nothing is copied where they are."""
    columns = [ints(tuples, name) for name in ORDER]
    later = np.zeros(max(tuples.num_rows - 1, 0), np.bool_)
    for column in reversed(columns):
        before, after = column[:-1], column[1:]
        later = (before > after) | ((before == after) & later)
    if not later.any():
        return tuples
    return tuples.take(pa.array(np.lexsort(columns[::-1])))


def tuple_rows(port: Port, tuples: pa.Table) -> pa.Table:
    """What a port makes of tuples, with hidden columns that tell their order.

    Columns whose names begin with TRIGGER tell rows of one tuple apart.
    """
    times = tuples.column(TS).cast(TIME)
    rows = port.filtered(tuples.set_column(tuples.schema.get_field_index(TS), TS, times))
    triggers = {TRIGGER + name: rows.column(name) for name in ORDER}
    triggers |= {name: rows.column(name) for name in rows.column_names if name.startswith(TRIGGER)}
    return triggered({port.time: rows.column(TS)} | port.selected(rows), pa.table(triggers))
