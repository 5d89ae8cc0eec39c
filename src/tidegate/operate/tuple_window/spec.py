"""The definition of an aggregate over windows of tuples, and the columns of state and results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER
from tidegate.errors import QueryError
from tidegate.operate.aggregate.function import FieldsSent, Function, check_columns
from tidegate.operate.aggregate.pane.overlap import overlaps
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints
from tidegate.schema import TIME

GROUP = "group"
"""The column of the state with the hash of a tuple's group, by which tuples are found."""

_PANE_ROWS = 4
_PANES = 1024
"""Sharing panes pays if a pane has at least so many tuples, and a window at most so many panes."""


@dataclass(frozen=True)
class TupleSpec(FieldsSent):
    """An aggregate over the last `rows` tuples of each group; no keys means one group.

    `arguments` are the columns that the functions read, besides those of the total order.
    """

    rows: int
    slide: int
    keys: tuple[tuple[str, pa.DataType], ...]
    arguments: tuple[tuple[str, pa.DataType], ...]
    functions: tuple[Function, ...]

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.rows:
            got = f"ROWS {self.rows} SLIDE {self.slide}"
            raise QueryError("window", "0 < SLIDE <= ROWS is required", got)
        check_columns(self.keys, self.state_schema, self.result_schema)

    @cached_property
    def state_schema(self) -> pa.Schema:
        """The columns of tuples that are kept."""
        places = ((name, pa.int64()) for name in (GROUP, "rank", *ORDER))
        return pa.schema([("bucket", pa.int32()), *places, *self.keys, *self.arguments])

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of full windows; the last three are the trigger's place in the order."""
        results = ((function.name, function.result) for function in self.functions)
        trigger = ((f"trigger_{name}", pa.int64()) for name in ORDER)
        times = [("window_start", TIME), ("window_end", TIME)]
        return pa.schema([*times, *self.keys, *results, *trigger])

    def emitted(self, counts: Ints) -> Ints:
        """How many windows are full in groups that have had so many tuples."""
        return np.maximum((counts - self.rows) // self.slide + 1, 0)

    def needed(self, counts: Ints, held: pa.Table, groups: Groups) -> Ints:
        """By group, the lowest rank that a later window needs."""
        return self.emitted(counts) * self.slide

    @property
    def pane_rows(self) -> int:
        """The tuples of a pane that windows share; 0 where every window is folded by itself."""
        pane = math.gcd(self.rows, self.slide)
        shared = self.slide < self.rows and pane >= _PANE_ROWS and self.rows // pane <= _PANES
        return pane if shared or self.overlaps else 0

    @property
    def overlaps(self) -> bool:
        """Whether a tuple is in so many windows that they also share merges (`Overlap`)."""
        return overlaps(self.windows, self.functions)

    @property
    def windows(self) -> int:
        """A tuple is in at most so many windows."""
        return -(-self.rows // self.slide)
