"""Merges the rows of all instances of an operator into one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidegate.order import Direction

HIDDEN = "~"
"""Columns whose names start with this carry the order; they are dropped before the sink."""


class OutputOrder(Protocol):
    """The order of an operator's rows; frozen and picklable, for the tasks that merge."""

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        """Merge the outputs of all instances, each in order; hidden columns may remain.

        `directions` are those of ORDER BY, `limit` is that of each window. All rows of one event
        time must be in the call. So a large output is merged span by span of times, by tasks.
        """

    def text(self, ordered: bool) -> str:
        """The order in words; `ordered` says that the query has an ORDER BY."""


@dataclass(frozen=True)
class TotalOrder:
    """The total order of tuples: instances have ranges of event times, one after the other."""

    def merge(
        self, outputs: Sequence[pa.Table], directions: Sequence[Direction], limit: int | None
    ) -> pa.Table:
        return pa.concat_tables(outputs)

    def text(self, ordered: bool) -> str:
        return "ts, input, source, position"


def without_hidden(rows: pa.Table) -> pa.Table:
    """The rows as they are shown."""
    return rows.select([n for n in rows.column_names if not n.startswith(HIDDEN)])
