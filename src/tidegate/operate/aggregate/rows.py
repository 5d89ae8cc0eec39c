"""What ports put out of finished windows, between their results and those who order rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.collect.order import HIDDEN
from tidegate.collect.window import first_per_window, in_order, window_order
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.port import Port

WINDOW = ("window_start", "window_end")


def window_rows(port: Port, keys: Sequence[str], results: pa.Table) -> pa.Table:
    """HAVING, the select list, and as much of ORDER BY and LIMIT as one instance can do.

    `keys` are the columns that tell rows of one window apart, in the order that counts.
    """
    results = port.filtered(results)
    named = {name: results.column(name) for name in WINDOW}
    named |= port.selected(results)
    for place, key in enumerate(port.order):
        named[f"{HIDDEN}o{place:03d}"] = evaluate(key.expr, results)
    for place, name in enumerate(keys):
        named[f"{HIDDEN}k{place:03d}"] = results.column(name)
    rows = pa.table(named).combine_chunks()
    if port.limit is not None:
        ordered = in_order(rows, window_order(rows, port.directions))
        rows = first_per_window(ordered, port.limit)
    return rows
