"""Defines the base class of joins of two streams: rows with the columns of both sides.

Each column carries the name of its side (`r.x`, `s.a`; in Python `left.x`, `right.a`). So
conditions and the select list above a join are ordinary expressions.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.query.check import types_of
from tidegate.query.name import EVENT_TIME, Names, SideName
from tidegate.query.node.logical import Logical, clause_property
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.clause.shed import Shed
    from tidegate.query.node.node import Node

SIDES = ("left", "right")


class Paired(Logical):
    """A node whose rows are pairs of tuples of its two children."""

    left: Node
    right: Node
    labels: tuple[str, str]
    clauses: tuple[Clause, ...] = ()
    shared: tuple[str, ...] = ()
    """Columns of the right side that equal those of the left; a result shows them once."""
    shed: ClassVar[Shed | None] = clause_property("SHED")
    windowed = False
    stateful = True

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Columns about the sampling of pairs, all doubles; empty without WITH SHED."""
        return ()

    @property
    def shown_sides(self) -> tuple[int, ...]:
        """The sides whose columns a row has."""
        return (0, 1)

    @cached_property
    def names(self) -> Names:
        named = (name for side in self.shown_sides for name in self.side_names(side))
        return Names((EVENT_TIME, *named, *self.drawn))

    @property
    def pair_names(self) -> Names:
        """The columns that the condition may use: those of both sides."""
        return Names((EVENT_TIME, *self.side_names(0), *self.side_names(1), *self.drawn))

    def side_names(self, side: int) -> tuple[SideName, ...]:
        """The columns of one side, its event time included."""
        return tuple(SideName(self.labels[side], n) for n in self.children[side].names)

    @cached_property
    def schema(self) -> pa.Schema:
        types = self.pair_types
        return pa.schema([pa.field(name, types[name]) for name in self.names])

    @cached_property
    def pair_types(self) -> dict[str, pa.DataType]:
        """The types of `pair_names`."""
        types = {EVENT_TIME: TIME}
        for label, child in zip(self.labels, self.children, strict=True):
            types |= {SideName(label, name): type_ for name, type_ in types_of(child).items()}
        return types | dict.fromkeys(self.drawn, pa.float64())

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset({EVENT_TIME})

    def check_labels(self) -> None:
        """Raises if both sides have one name."""
        if self.labels[0].lower() == self.labels[1].lower():
            raise QueryError(
                "JOIN",
                "both sides need a name of their own",
                f"{self.labels[0]} twice",
                "Give one of them another name with AS.",
            )
