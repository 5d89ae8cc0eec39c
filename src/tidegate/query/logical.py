"""What all nodes of the logical plan have in common: equality, clauses, where state begins.

A plan is a graph: a stream that is read twice is one node below two. What is told of a node is
therefore told once and kept with it; to ask again on every path would double with each level.
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
    """The part of a node that is the same for all of them."""

    if TYPE_CHECKING:
        stateful: bool
        clauses: tuple[Clause, ...]

        @property
        def children(self) -> tuple[Node, ...]: ...

        @property
        def names(self) -> tuple[str, ...]: ...

    def clause(self, word: str) -> Any:
        """The WITH clause on it that begins with a word; None where there is none."""
        return next((clause for clause in self.clauses if clause.word == word), None)

    @cached_property
    def mark(self) -> int:
        """A number that equal nodes share, and that most others do not have."""
        return hash((type(self).__name__, self.names, *(child.mark for child in self.children)))

    @property
    def reach_us(self) -> int:
        """How much later than the tuples that make it a row may be: a window, or a wait."""
        return 0

    @cached_property
    def own_time(self) -> bool:
        """Whether `ts` of its rows is a time of their own, and each was decided at it or later.

        The event time is then the instant of the decision.
        """
        return False

    @cached_property
    def row_key(self) -> RowKey:
        """The columns that tell its rows apart."""
        return NO_KEY

    @cached_property
    def stateless(self) -> bool:
        """Whether every row comes of one tuple alone, so that Spark can compute its columns."""
        return not self.stateful and all(child.stateless for child in self.children)

    @cached_property
    def after_state(self) -> bool:
        """Whether kernels alone can evaluate expressions over these rows: Spark has seen its last.

        A side of a join may still have been computed by Spark, so lowering decides what is over it.
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
