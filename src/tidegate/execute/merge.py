"""The rows of all instances for one port as one sequence, for whoever takes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.collect.order import OutputOrder
from tidegate.operate.port import Port


def merged(order: OutputOrder, port: Port, tables: Sequence[pa.Table]) -> pa.Table:
    """Pieces of a port, each in order, merged and without hidden columns."""
    rows = order.merge(tables, port.directions, port.limit)
    return rows.select(port.schema.names).cast(port.schema)
