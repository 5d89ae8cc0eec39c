"""Deduplication as a logical node: one tuple per key within a time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.calendar.duration import duration_text
from tidegate.errors import QueryError
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import check_type, key_type, refuse_shadowed, set_fields, types_of
from tidegate.query.name import EVENT_TIME, Names, canonical, expression_text, is_plain
from tidegate.query.node.logical import Logical
from tidegate.query.row_key import RowKey
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.node.node import Node

FIRST, LAST = "first", "last"
KEEPS = (FIRST, LAST)
"""Which tuple of a key can be kept."""

_WHERE = "DISTINCT ON"


class TupleRows(Logical):
    """The base of stateful nodes whose rows are tuples of the child, each at its event time.

    Rows of windows count as tuples; their window is then two ordinary columns.
    """

    child: Node
    windowed = False
    stateful = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        held = self.child.names
        return Names((EVENT_TIME, *held)) if self.child.windowed else held

    @cached_property
    def schema(self) -> pa.Schema:
        held = self.child.schema
        return pa.schema([pa.field(EVENT_TIME, TIME), *held]) if self.child.windowed else held

    @property
    def own_time(self) -> bool:
        """Whether a row's `ts` may be earlier than the instant of its decision."""
        return self.child.own_time

    @cached_property
    def event_names(self) -> frozenset[str]:
        return self.child.event_names | {EVENT_TIME}

    def check_event_time(self, where: str) -> None:
        """Raises if a column has the name of the event time but is not the event time."""
        remedy = f"Give the column another name: FROM (SELECT {EVENT_TIME} AS t, ... FROM ...)."
        refuse_shadowed(self.child, where, remedy)


@dataclass(frozen=True, eq=False)
class Dedup(TupleRows):
    """One tuple per key within a time.

    KEEP FIRST: a tuple passes if no kept tuple of its key is at most `within_us` before it. KEEP
    LAST: the last tuple at most that long after the first, decided when the frontier has passed
    that time.
    """

    child: Node
    keys: tuple[exp.Expression, ...]
    within_us: int
    keep: str = FIRST

    def __post_init__(self) -> None:
        self.check_event_time(_WHERE)
        if not self.keys:
            raise QueryError(_WHERE, "needs a column", "none", "Name one: DISTINCT ON (id).")
        if self.keep not in KEEPS:
            raise QueryError("KEEP", f"must be {' or '.join(KEEPS)}", repr(self.keep))
        if self.within_us <= 0:
            raise QueryError("WITHIN", "must be longer than zero", duration_text(self.within_us))
        names = self.child.names
        set_fields(self, keys=tuple(canonical(key, names, _WHERE) for key in self.keys))
        for key in self.keys:
            check_type(self.child, key, _WHERE)
            with suppress(UnknownKernel):
                type_ = bind(key, types_of(self.child), _WHERE).type
                key_type(type_, expression_text(key), _WHERE)

    @property
    def own_time(self) -> bool:
        return self.keep == LAST or self.child.own_time

    @property
    def reach_us(self) -> int:
        return self.within_us

    @cached_property
    def row_key(self) -> RowKey:
        named = tuple(key.name for key in self.keys if is_plain(key))
        if len(named) < len(self.keys):
            return RowKey(lack="DISTINCT ON an expression, which is no column")
        return RowKey(named, replaces=True)

    @property
    def summary(self) -> str:
        keys = ", ".join(expression_text(key) for key in self.keys)
        return f"distinct on {keys}: keep {self.keep} within {duration_text(self.within_us)}"
