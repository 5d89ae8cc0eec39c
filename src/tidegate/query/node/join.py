"""The join of two streams as a logical node; a pair has the later of its two event times.

Rows of other kinds than the inner join have a time of their own, see `tidegate.operate.join.kind`.
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
from tidegate.operate.join.kind import INNER, JoinKind
from tidegate.query.binder import UnknownKernel, bind_predicate
from tidegate.query.check import AFTER_STATE, bind_after
from tidegate.query.clause.column import KEPT
from tidegate.query.name import canonical, expression_text
from tidegate.query.node.logical import clause_property
from tidegate.query.node.stream_pair import SIDES, Paired
from tidegate.query.window import JoinWindow

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.clause.error import ErrorBound
    from tidegate.query.node.node import Node

SIGNS = 16
"""Random signs per tuple; the degrees of freedom of an error interval."""

DRAWN = (KEPT, *(f"#chance{sign}" for sign in range(SIGNS)))
"""What a shedding join says about a pair: the probability with which it was kept, and, if its
aggregate has an error bound, for each random sign the sum of sqrt(1 - probability) over both tuples
with that sign (see `tidegate.query.clause.pairs`). All are doubles.
"""

PredicateFunction = Callable[[pa.Table, pa.Table], Any]
"""A predicate in Python: left rows and right rows, aligned pair by pair, to booleans."""


@dataclass(frozen=True, eq=False)
class Join(Paired):
    """The pairs of tuples that are close in time, or in number, and satisfy the predicate.

    The predicate is an expression over both sides, a function of their rows, or None for all pairs.
    """

    left: Node
    right: Node
    left_window: JoinWindow
    right_window: JoinWindow
    predicate: exp.Expression | PredicateFunction | None
    labels: tuple[str, str] = SIDES
    kind: JoinKind = INNER
    clauses: tuple[Clause, ...] = ()
    """WITH SHED drops tuples of its sides; the last column is then the probability of a pair. WITH
    ERROR after it limits the error of the aggregate over the pairs, and so how much is dropped.
    """
    bound: ClassVar[ErrorBound | None] = clause_property("ERROR")

    def __post_init__(self) -> None:
        self.check_labels()
        for window in (self.left_window, self.right_window):
            window.check_side()
            if self.kind.tracked and window.extent[0] is None:
                raise QueryError(
                    self.kind.summary.upper(),
                    "needs windows of time, which tell when no partner can come any more",
                    f"[{window}]",
                    "Write [RANGE 5 MINUTES] in place of it, or JOIN for the pairs alone.",
                )
        if not isinstance(self.predicate, exp.Expression):
            return
        predicate = canonical(self.predicate, self.pair_names, "ON")
        object.__setattr__(self, "predicate", predicate)
        with suppress(UnknownKernel):
            types = self.pair_types
            if any(c.stateless for c in self.children):
                bind_predicate(predicate, types, "ON")
            else:
                bind_after(predicate, types, "ON", predicate=True, remedy=AFTER_STATE)

    @property
    def summary(self) -> str:
        windows = zip(self.labels, (self.left_window, self.right_window), strict=True)
        sides = " and ".join(f"{label} [{window}]" for label, window in windows)
        way = "".join(f", {clause}" for clause in self.clauses)
        return f"{self.kind.summary} {sides} on {self._condition}{way}"

    @property
    def _condition(self) -> str:
        if self.predicate is None:
            return "nothing"
        if isinstance(self.predicate, exp.Expression):
            return expression_text(self.predicate)
        name = getattr(self.predicate, "__qualname__", type(self.predicate).__qualname__)
        return f"the function {name}"

    @property
    def shown_sides(self) -> tuple[int, ...]:
        return self.kind.shown

    @property
    def reach_us(self) -> int:
        windows = (self.left_window, self.right_window)
        return max((windows[side].extent[0] or 0 for side in self.kind.tracked), default=0)

    @cached_property
    def own_time(self) -> bool:
        return bool(self.kind.tracked)

    @property
    def drawn(self) -> tuple[str, ...]:
        """See `DRAWN`."""
        return () if self.shed is None else (KEPT,) if self.bound is None else DRAWN
