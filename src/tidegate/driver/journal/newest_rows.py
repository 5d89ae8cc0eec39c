"""Keeps some of the newest rows of a run: of each output, of those late, of those rejected."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from tidegate.clock import Clock
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.sink.value_format import first_rows_text

_SHOWN_ROWS = 20
_EVERY_S = 0.5
"""How often rows are kept, at most."""


class NewestRows(BatchObserver):
    """Copies a few rows of a batch, not of every one where they are quick; any thread may ask.

    Holds 20 rows of each output, and of the late ones of each stream.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, pa.Table] = {}
        self._kept_at = -math.inf

    def committed(self, batch: CommittedBatch) -> None:
        if self._clock.now() - self._kept_at < _EVERY_S and not batch.manifest.finished:
            return
        for target, output in zip(batch.plan.targets, batch.work.staged.outputs, strict=True):
            found = {f"output {target.name or ''}": output.rows, "rejected": output.rejected}
            found |= {f"late {stream}": rows for stream, rows in output.late.items()}
            for name, rows in found.items():
                if rows is not None and rows.num_rows:
                    self._kept_at = self._clock.now()
                    self._kept[name] = _copied(rows)

    def as_dict(self) -> dict[str, Any]:
        """As a page shows them: texts of cells, by row."""
        return {name: _texts(rows) for name, rows in list(self._kept.items())}


def _copied(rows: pa.Table) -> pa.Table:
    """The last rows, and nothing of the memory of the others."""
    last = range(max(rows.num_rows - _SHOWN_ROWS, 0), rows.num_rows)
    return rows.take(pa.array(last, pa.int64()))


def _texts(rows: pa.Table) -> dict[str, Any]:
    names, cells = first_rows_text(rows)
    return {"columns": names, "rows": [list(row) for row in cells]}
