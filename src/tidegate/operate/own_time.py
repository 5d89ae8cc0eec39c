"""Puts out tuples that were decided later than their own time, each at that instant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.collect.trigger import TRIGGER, TriggerOrder, triggered
from tidegate.operate.kernels.order import Ints
from tidegate.operate.port import Port
from tidegate.schema import TIME

OWN_TIME = "own_ts"
"""The column with the own time of a row, which is at or before the instant of its decision."""

DECISION_ORDER = TriggerOrder("instant of the decision, ts, input, source, position")


def decided_rows(port: Port, tuples: pa.Table, instants: Ints) -> pa.Table:
    """What a port makes of tuples that were decided at these instants, in DECISION_ORDER."""
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
