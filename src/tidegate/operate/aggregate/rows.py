"""Applies HAVING, the select list, ORDER BY and LIMIT of a port to finished windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import DECIDED
from tidegate.collect.order import HIDDEN
from tidegate.collect.ranking import PARTITION, RANKED
from tidegate.collect.window import EMITTED, first_per_window, in_order, window_order
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.order import canonical, flat, integers
from tidegate.operate.port import Port

WINDOW = ("window_start", "window_end")

PLACE = "place"
"""The column with the place of a row in its list."""


def window_rows(port: Port, keys: Sequence[str], results: pa.Table) -> pa.Table:
    """Apply HAVING, the select list, and as much of ORDER BY and LIMIT as one instance can.

    `keys` are the columns that tell rows of one window apart, the most significant first. Rows of
    one window with equal keys keep their order.
    """
    if port.unnests is not None:
        results, keys = unnested(results, port.unnests), [*keys, PLACE]
    results = port.filtered(results)
    given = [n for n in results.column_names if n == DECIDED or n.startswith(EMITTED)]
    named = {name: results.column(name) for name in (*WINDOW, *given)}
    named |= port.selected(results)
    for place, key in enumerate(port.order):
        named[f"{HIDDEN}o{place:03d}"] = evaluate(key.expr, results)
    for place, name in enumerate(keys):
        named[f"{HIDDEN}k{place:03d}"] = results.column(name)
    if port.ranked is not None:
        for place, expr in enumerate(port.ranked.per):
            named[f"{PARTITION}{place:03d}"] = canonical(flat(evaluate(expr, results)))
        for place, key in enumerate(port.ranked.order):
            named[f"{RANKED}{place:03d}"] = canonical(flat(evaluate(key.expr, results)))
    rows = pa.table(named).combine_chunks()
    if port.ranked is not None:
        rows = port.ranked.ranking.kept(rows, partly=True)
    if port.limit is not None:
        ordered = in_order(rows, window_order(rows, port.directions))
        rows = first_per_window(ordered, port.limit)
    return rows


def unnested(results: pa.Table, name: str) -> pa.Table:
    """One row for each entry of the lists of structs in a column, its fields as o0, o1, ...

    The other columns are repeated. PLACE numbers the rows of a list.
    """
    lists = flat(results.column(name))
    parents = integers(pc.list_parent_indices(lists).cast(pa.int64()))
    place = np.arange(len(parents)) - np.searchsorted(parents, parents)
    rows = results.drop_columns([name]).take(pa.array(parents))
    for number, column in enumerate(pc.list_flatten(lists).flatten()):
        rows = rows.append_column(f"o{number}", column)
    return rows.append_column(PLACE, pa.array(place))
