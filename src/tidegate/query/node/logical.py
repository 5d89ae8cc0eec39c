"""What all nodes of the logical plan share: equality, clauses, and where state begins.

A plan is a graph: a stream that is read twice is one node below two others. So properties that look
at the children are cached on the node; recomputing them on every path would take time exponential
in the depth.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegate.query.row_key import NO_KEY, RowKey

if TYPE_CHECKING:
    from tidegate.query.clause.clause import Clause
    from tidegate.query.node.node import Node


class Logical:
    """The base class of all nodes."""

    if TYPE_CHECKING:
        stateful: bool
        child: Node
        clauses: tuple[Clause, ...]

        @property
        def names(self) -> tuple[str, ...]: ...

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes whose rows it reads: here the only one."""
        return (self.child,)

    def clause(self, word: str) -> Any:
        """The WITH clause of this node that begins with a word; None if it has none."""
        return next((clause for clause in self.clauses if clause.word == word), None)

    @cached_property
    def mark(self) -> int:
        """A hash that equal nodes share; most different nodes differ in it."""
        return hash((type(self).__name__, self.names, *(child.mark for child in self.children)))

    @property
    def reach_us(self) -> int:
        """How much later than its tuples a row may come: the length of a window or a wait."""
        return 0

    @cached_property
    def own_time(self) -> bool:
        """Whether the rows' `ts` may be earlier than the instant at which they were decided.

        The event time is then that instant, not `ts`.
        """
        return False

    @cached_property
    def row_key(self) -> RowKey:
        """The columns that tell rows apart."""
        return NO_KEY

    @cached_property
    def stateless(self) -> bool:
        """Whether every row is made of one tuple alone, so that Spark can compute its columns."""
        return not self.stateful and all(child.stateless for child in self.children)

    @cached_property
    def after_state(self) -> bool:
        """Whether only kernels can evaluate expressions over these rows, because they no longer
        pass through Spark.

        One side of a join may still be computed by Spark, so lowering decides for the expressions
        over it.
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
        # The marks differ for nearly all nodes that differ, so fields are seldom compared.
        return self.mark == other.mark and _compared_fields(self) == _compared_fields(other)

    def __hash__(self) -> int:
        return self.mark


def clause_property(word: str) -> Any:
    """A property that returns the node's clause with a given first word."""
    return property(lambda node: node.clause(word))


def _compared_fields(node: Any) -> list[object]:
    """The fields that decide whether two nodes are equal."""
    return [getattr(node, field.name) for field in fields(node) if field.compare]
