"""The definition of an aggregate over sessions, and the columns of its state and results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.calendar.duration import session_text
from tidegate.operate.aggregate.function import FieldsSent, Function, check_columns
from tidegate.operate.kernels.order import Ints
from tidegate.schema import TIME

BUCKET, START, LAST = "bucket", "start", "last"
LIVE, BATCH, WHOLE = "live", "batch", "whole"


@dataclass(frozen=True)
class SessionSpec(FieldsSent):
    """An aggregate over the sessions of each group; no keys means one group.

    Neighbours at most `gap_us` apart are of one session. A session takes no tuple that is more than
    `max_us` after its first. A **piece** is some neighbouring tuples of a session, folded: the
    first and the last time, and the states of the functions.
    """

    gap_us: int
    max_us: int | None
    keys: tuple[tuple[str, pa.DataType], ...]
    functions: tuple[Function, ...]

    def __post_init__(self) -> None:
        check_columns(self.keys, self.state_schema)

    def __str__(self) -> str:
        return session_text(self.gap_us, self.max_us)

    @property
    def longest_us(self) -> int:
        """The longest time from the first to the last tuple of a session."""
        return MAX_US if self.max_us is None else self.max_us

    def slots(self, times: Ints) -> Ints | None:
        """The slot of each time: no piece may have tuples of two slots. None: no such limit."""
        return None

    @cached_property
    def piece_schema(self) -> pa.Schema:
        """The columns of pieces."""
        times = ((START, pa.int64()), (LAST, pa.int64()))
        return pa.schema([(BUCKET, pa.int32()), *times, *self.keys, *self._states])

    @cached_property
    def open_schema(self) -> pa.Schema:
        """The columns of open sessions in memory; `live` is the smallest of their stored rows."""
        return self.piece_schema.append(pa.field(LIVE, pa.int64()))

    @cached_property
    def state_schema(self) -> pa.Schema:
        """The columns of stored rows (`state.py`)."""
        added = (pa.field(BATCH, pa.int64()), pa.field(WHOLE, pa.bool_()))
        return pa.schema([*self.open_schema, *added])

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of sessions that have ended."""
        results = ((function.name, function.result) for function in self.functions)
        return pa.schema(
            [("window_start", TIME), ("window_end", TIME), *self.keys, *results],
        )

    @property
    def _states(self) -> tuple[tuple[str, pa.DataType], ...]:
        return tuple(column for function in self.functions for column in function.state)
