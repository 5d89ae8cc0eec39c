"""The join of a stream to a table as a logical node.

It needs no window: each tuple meets the table's rows as they are at its event time, which is also
the time of the result row. Columns are named as in a join of two streams; SEMI and ANTI keep the
stream's columns unchanged.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.join.kind import INNER, JoinKind
from tidegate.operate.table_join.lookup import KINDS
from tidegate.query.binder import UnknownKernel, bind_predicate
from tidegate.query.check import AFTER_STATE, bind_after, types_of
from tidegate.query.name import EVENT_TIME, Names, SideName, canonical, expression_text
from tidegate.query.node.logical import Logical
from tidegate.query.node.stream_pair import SIDES
from tidegate.query.table import TableDef
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.node.node import Node


@dataclass(frozen=True, eq=False)
class TableJoin(Logical):
    """A stream's tuples with the table's rows that satisfy the predicate; None matches all rows."""

    child: Node
    table: TableDef
    predicate: exp.Expression | None
    kind: JoinKind = INNER
    labels: tuple[str, str] = SIDES
    stateful = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            words, got = ", ".join(k.summary.upper() for k in KINDS), self.kind.summary.upper()
            raise QueryError(
                "JOIN",
                f"a stream is joined to {self.table.where} by {' or '.join(words.rsplit(', ', 1))}",
                got,
                f"Its rows have no event time, and cannot stand alone: leave {got.split()[0]} out.",
            )
        if self.labels[0].lower() == self.labels[1].lower():
            raise QueryError(
                "JOIN",
                "the stream and the table need a name of their own",
                f"{self.labels[0]} twice",
                "Give one of them another name with AS.",
            )
        if self.predicate is None:
            return
        names = Names((*self.side_names(0), *self.side_names(1)))
        predicate = canonical(self.predicate, names, "ON")
        object.__setattr__(self, "predicate", predicate)
        with suppress(UnknownKernel):
            of_child = types_of(self.child).items()
            types: dict[str, pa.DataType] = {SideName(self.labels[0], n): t for n, t in of_child}
            types |= {SideName(self.labels[1], f.name): f.type for f in self.table.schema}
            if self.child.stateless:
                bind_predicate(predicate, types, "ON")
            else:
                bind_after(predicate, types, "ON", predicate=True, remedy=AFTER_STATE)

    @property
    def summary(self) -> str:
        on = "nothing" if self.predicate is None else expression_text(self.predicate)
        return f"{self.kind.summary} with table {self.table.name} as {self.labels[1]} on {on}"

    @property
    def filters(self) -> bool:
        """Whether it only chooses tuples (SEMI, ANTI), so that its columns are the stream's."""
        return not self.kind.pairs

    @cached_property
    def windowed(self) -> bool:
        return self.filters and self.child.windowed

    @cached_property
    def own_time(self) -> bool:
        return self.child.own_time

    def side_names(self, side: int) -> tuple[SideName, ...]:
        """The columns of the stream, event time included, or of the table."""
        columns = self.table.schema.names if side else self.child.names
        return tuple(SideName(self.labels[side], n) for n in columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        if self.filters:
            return self.child.names
        return Names((EVENT_TIME, *self.side_names(0), *self.side_names(1)))

    @cached_property
    def schema(self) -> pa.Schema:
        if self.filters:
            return self.child.schema
        fields = [pa.field(EVENT_TIME, TIME)]
        for label, schema in zip(self.labels, (self.child.schema, self.table.schema), strict=True):
            fields += [pa.field(SideName(label, f.name), f.type) for f in schema]
        return pa.schema(fields)

    @cached_property
    def event_names(self) -> frozenset[str]:
        held = self.child.event_names
        if self.filters:
            return held
        return frozenset({EVENT_TIME, *(SideName(self.labels[0], n) for n in held)})
