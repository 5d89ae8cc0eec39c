"""Says between which event times the tuples of a row lie, as far as the query tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Int64s
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node.aggregation import Aggregate
from tidegate.query.node.asof import AsOf
from tidegate.query.node.dedup import Dedup
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.join import Join
from tidegate.query.node.limit import Limit
from tidegate.query.node.node import Node
from tidegate.query.node.over import Lead, Over
from tidegate.query.node.process import ProcessNode


@dataclass(frozen=True)
class TupleSpan:
    """Event times, both ends among them."""

    low_us: int = MIN_US
    high_us: int = MAX_US

    @staticmethod
    def of_row(node: Node, row: pa.Table) -> TupleSpan:
        """Where the tuples of a row of a node can be."""
        if not {EVENT_TIME, WINDOW[1]} & set(row.column_names):
            return TupleSpan()
        at = int(times_of(row)[0])
        nodes = list(bottom_up([node]))
        ahead = sum(part.reach_us for part in nodes)
        backs = [_back_us(part) for part in nodes]
        bounded = [back for back in backs if back is not None]
        low = MIN_US if len(bounded) < len(backs) else max(at - sum(bounded), MIN_US)
        endless = any(isinstance(part, Lead) for part in nodes)
        return TupleSpan(low, MAX_US if endless else min(at + ahead, MAX_US))

    def of(self, rows: pa.Table) -> pa.Table:
        """The rows in it."""
        times = times_of(rows)
        return rows.filter(pa.array((times >= self.low_us) & (times <= self.high_us)))

    def ends_before(self, rows: pa.Table) -> bool:
        """Whether what follows these rows, which come in the order of time, is after it."""
        return rows.num_rows > 0 and int(times_of(rows)[-1]) > self.high_us


def times_of(rows: pa.Table) -> Int64s:
    """The event times that rows show, in microseconds."""
    # The first of them is ours: a column of the select list may have the name of the other.
    name = next(name for name in rows.column_names if name in (EVENT_TIME, WINDOW[1]))
    times: Int64s = rows.column(name).cast(pa.int64()).to_numpy()
    return np.asarray(times)


def _back_us(node: Node) -> int | None:
    """How far back from its rows a node looks; None where it may be any time."""
    if isinstance(node, Aggregate):
        return node.window.longest_us
    if isinstance(node, Join):
        far = [window.extent[0] for window in (node.left_window, node.right_window)]
        return None if None in far else max(us for us in far if us is not None)
    if isinstance(node, AsOf):
        return node.tolerance_us
    if isinstance(node, Dedup):
        return node.within_us
    if isinstance(node, Over | ProcessNode) and not isinstance(node, Limit):
        return None
    return 0
