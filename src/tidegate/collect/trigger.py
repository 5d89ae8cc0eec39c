"""Orders rows by the tuple or timer that triggered each of them.

Hidden columns carry the order of the trigger, and the order of rows of one trigger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.collect.order import HIDDEN
from tidegate.order import Direction

TRIGGER = "trigger_"


@dataclass(frozen=True)
class TriggerOrder:
    """The order of triggers; `what` is its text."""

    what: str

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        some = [t for t in outputs if t.num_rows]
        if len(some) <= 1:
            return some[0] if some else outputs[0]
        rows = pa.concat_tables(some).combine_chunks()
        names = [n for n in rows.column_names if n.startswith(HIDDEN + TRIGGER)]
        order = np.lexsort([rows.column(n).to_numpy() for n in reversed(names)])
        return rows.take(pa.array(order))

    def text(self, ordered: bool) -> str:
        return self.what


def triggered(columns: dict[str, pa.ChunkedArray], triggers: pa.Table) -> pa.Table:
    """Output rows with the order columns of `triggers`, hidden."""
    names = [n for n in triggers.column_names if n.startswith(TRIGGER)]
    return pa.table({**columns, **{HIDDEN + n: triggers.column(n) for n in names}})
