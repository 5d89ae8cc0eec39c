"""EXPLODE and UNNEST as a logical node: one row for each value of a list."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.leaf import is_list
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import set_fields, types_of
from tidegate.query.name import EVENT_TIME, Names, canonical, distinct_names, expression_text
from tidegate.query.node.dedup import TupleRows
from tidegate.schema import TIME, type_name

if TYPE_CHECKING:
    from tidegate.query.node.node import Node


@dataclass(frozen=True, eq=False)
class Unnest(TupleRows):
    """The child's columns, and one value of the row's list in the column `value`.

    Rows of one tuple come in list order, at its event time. An empty or NULL list gives no row;
    with `outer` it gives one row with NULL as the value. `position` names a column for the value's
    place in the list, counted from `first`. The node keeps no state but counts as stateful, because
    it must begin a new subquery: what comes before it gives one row per tuple.
    """

    child: Node
    values: exp.Expression
    value: str
    position: str | None = None
    first: int = 0
    outer: bool = False

    def __post_init__(self) -> None:
        self.check_event_time("EXPLODE")
        set_fields(self, values=canonical(self.values, self.child.names, "EXPLODE"))
        distinct_names(self.names, "EXPLODE")
        with suppress(UnknownKernel):
            _ = self.schema

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The child's columns besides the event time."""
        return tuple(name for name in self.child.names if name != EVENT_TIME)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that it adds."""
        return (self.value,) if self.position is None else (self.position, self.value)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return Names((EVENT_TIME, *self.columns, *self.added))

    @cached_property
    def schema(self) -> pa.Schema:
        types = types_of(self.child)
        element = self.element(bind(self.values, types, "EXPLODE").type)
        places = [] if self.position is None else [pa.field(self.position, pa.int32())]
        held = (pa.field(n, types[n]) for n in self.columns)
        return pa.schema([pa.field(EVENT_TIME, TIME), *held, *places, (self.value, element)])

    def element(self, type_: pa.DataType) -> pa.DataType:
        """The type of a value; raises if the argument is not a list."""
        if not is_list(type_):
            raise QueryError(
                "EXPLODE",
                "must be of an array",
                f"{expression_text(self.values)}, which is {type_name(type_)}",
                "SPLIT(x, ',') makes an array of a text.",
            )
        return type_.value_type

    @property
    def summary(self) -> str:
        outer = " outer" if self.outer else ""
        return f"explode{outer} {expression_text(self.values)} as {', '.join(self.added)}"
