"""The join of two streams as a logical node, between what SQL and Python say and lowering.

Its columns are those of both sides, each under the name of its side (`r.x`, `s.a`; in Python
`left.x`, `right.a`), so that the conditions and the select list above it are expressions like any
other. The event time of a pair is the later of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.check import AFTER_STATE, bind_after, types_of
from tidegate.query.clause.column import KEPT
from tidegate.query.logical import Logical, asked
from tidegate.query.name import EVENT_TIME, Names, SideName, canonical, expression_text
from tidegate.query.typing import UnknownKernel, bind_predicate
from tidegate.query.window import JoinWindow
from tidegate.schema import TIME

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.clause.error import ErrorBound
    from tidegate.query.clause.shed import Shed
    from tidegate.query.node import Node

SIDES = ("left", "right")

SIGNS = 16
"""How many random signs of each tuple are used: so many degrees of freedom an interval has."""

DRAWN = (KEPT, *(f"#chance{sign}" for sign in range(SIGNS)))
"""What a join that sheds says of a pair: with which probability it came through, and where its
aggregate has an error bound, what its tuples have to do with chance: for each sign of theirs the
sum of the roots of 1 - probability of both, each with that sign. All are doubles."""

PredicateFunction = Callable[[pa.Table, pa.Table], Any]
"""A predicate in Python: the left rows and the right rows, pair by pair, to booleans."""


@dataclass(frozen=True, eq=False)
class Join(Logical):
    """The pairs of tuples that are near in time, or in number, and satisfy the predicate.

    The predicate is an expression over both sides, a function of their rows, or None for all.
    """

    left: Node
    right: Node
    left_window: JoinWindow
    right_window: JoinWindow
    predicate: exp.Expression | PredicateFunction | None
    labels: tuple[str, str] = SIDES
    clauses: tuple[Clause, ...] = ()
    """WITH SHED: it drops tuples of its sides, and the last column says how probable a pair was.
    WITH ERROR after it: how far the aggregate over the pairs may be off, so that no more is
    dropped than that allows."""
    windowed = False
    stateful = True
    shed: ClassVar[Shed | None] = asked("SHED")
    bound: ClassVar[ErrorBound | None] = asked("ERROR")

    def __post_init__(self) -> None:
        if self.labels[0].lower() == self.labels[1].lower():
            raise QueryError(
                "JOIN",
                "both sides need a name of their own",
                f"{self.labels[0]} twice",
                "Give one of them another name with AS.",
            )
        for window in (self.left_window, self.right_window):
            window.check_side()
        if not isinstance(self.predicate, exp.Expression):
            return
        predicate = canonical(self.predicate, self.names, "ON")
        object.__setattr__(self, "predicate", predicate)
        with suppress(UnknownKernel):
            types = types_of(self)
            if any(c.stateless for c in self.children):
                bind_predicate(predicate, types, "ON")
            else:
                bind_after(predicate, types, "ON", predicate=True, remedy=AFTER_STATE)

    @property
    def summary(self) -> str:
        windows = zip(self.labels, (self.left_window, self.right_window), strict=True)
        sides = " and ".join(f"{label} [{window}]" for label, window in windows)
        way = "".join(f", {clause}" for clause in self.clauses)
        return f"join {sides} on {self._condition}{way}"

    @property
    def _condition(self) -> str:
        if self.predicate is None:
            return "nothing"
        if isinstance(self.predicate, exp.Expression):
            return expression_text(self.predicate)
        name = getattr(self.predicate, "__qualname__", type(self.predicate).__qualname__)
        return f"the function {name}"

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @cached_property
    def names(self) -> Names:
        return Names((EVENT_TIME, *self.side_names(0), *self.side_names(1), *self.drawn))

    @property
    def drawn(self) -> tuple[str, ...]:
        """The columns that say how pairs came through."""
        return () if self.shed is None else (KEPT,) if self.bound is None else DRAWN

    def side_names(self, side: int) -> tuple[SideName, ...]:
        """The columns of one side, its event time among them."""
        return tuple(SideName(self.labels[side], n) for n in self.children[side].names)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(EVENT_TIME, TIME)]
        for label, child in zip(self.labels, self.children, strict=True):
            fields += [pa.field(SideName(label, f.name), f.type) for f in child.schema]
        fields += [pa.field(name, pa.float64()) for name in self.drawn]
        return pa.schema(fields)

    @property
    def event_names(self) -> frozenset[str]:
        return frozenset({EVENT_TIME})
