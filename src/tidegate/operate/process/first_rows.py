"""LIMIT without a window: the first rows of a stream in the total order, and then none."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.operate.process.definition import ROW, Process


class FirstRows(Process):
    """Passes on the first `limit` rows; one object sees all tuples (`one_key`).

    Its state is how many rows are left, so the rows are the same for any cut into batches.
    """

    def __init__(self, limit: int, output: tuple[tuple[str, pa.DataType], ...]) -> None:
        self.left = limit
        self.names = [name for name, _ in output]
        self.output = pa.schema(output)  # type: ignore[misc]

    def process(self, batch: pa.Table) -> pa.Table:
        rows = min(self.left, batch.num_rows)
        self.left -= rows
        passed = batch.slice(0, rows).select(self.names)
        return passed.append_column(ROW, pa.array(np.arange(rows)))

    def snapshot(self) -> dict[str, int]:
        return {"left": self.left}

    def restore(self, state: Any) -> None:
        self.left = state["left"]


def one_key(tuples: pa.Table) -> pa.Array:
    """The same key for all tuples."""
    return pa.array(np.zeros(tuples.num_rows, np.int64))


def limit_of(factory: Any) -> int | None:
    """The limit of a factory of FirstRows; None for any other factory."""
    if isinstance(factory, partial) and factory.func is FirstRows:
        return int(factory.args[0])
    return None
