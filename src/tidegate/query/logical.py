"""The base class of the nodes of the logical plan: equality, clauses, and where state begins.

A plan is a graph: a stream that is read twice is one node below two others. The properties of a
node are therefore computed once and cached on it. Computing them on every path would cost twice as
much with each level.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegate.query.row_key import NO_KEY, RowKey

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.node import Node


class Logical:
    """What all nodes have in common."""

    if TYPE_CHECKING:
        stateful: bool
        clauses: tuple[Clause, ...]

        @property
        def children(self) -> tuple[Node, ...]: ...

        @property
        def names(self) -> tuple[str, ...]: ...

    def clause(self, word: str) -> Any:
        """The WITH clause of the node that begins with a word; None if there is none."""
        return next((clause for clause in self.clauses if clause.word == word), None)

    @cached_property
    def mark(self) -> int:
        """A hash: equal for equal nodes, and different for most others."""
        return hash((type(self).__name__, self.names, *(child.mark for child in self.children)))

    @property
    def reach_us(self) -> int:
        """How much later than its tuples a row may come, because of a window or a wait."""
        return 0

    @cached_property
    def own_time(self) -> bool:
        """Whether rows show a time of their own as `ts`, at or before the instant of the decision.

        Their event time is then that instant.
        """
        return False

    @cached_property
    def row_key(self) -> RowKey:
        """The columns that identify a row."""
        return NO_KEY

    @cached_property
    def stateless(self) -> bool:
        """Whether every row is made of a single tuple, so that Spark can compute its columns."""
        return not self.stateful and all(child.stateless for child in self.children)

    @cached_property
    def after_state(self) -> bool:
        """Whether only kernels can evaluate expressions over these rows: they come after state.

        Spark may still compute expressions over one side of a join, so lowering decides for those.
        """
        if len(self.children) < 2:
            return self.stateful or any(child.after_state for child in self.children)
        if self.stateful:
            return not any(child.stateless for child in self.children)
        return not self.stateless

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self) or not isinstance(other, Logical):
            return NotImplemented
        return self.mark == other.mark and _held(self) == _held(other)

    def __hash__(self) -> int:
        return self.mark


def asked(word: str) -> Any:
    """A property of a node: its clause that begins with a word."""
    return property(lambda node: node.clause(word))


def _held(node: Any) -> list[object]:
    """The fields that make a node what it is."""
    return [getattr(node, field.name) for field in fields(node) if field.compare]
