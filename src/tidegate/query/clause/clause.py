"""The interface of every WITH clause, and how a clause is put on the aggregate of a query.

A new clause is one file here and a line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.grammar import PERCENT, SyntaxPart
from tidegate.query.name import NamedExpr, column, expression_text, is_column, refuse_taken
from tidegate.query.node.node import Aggregate, Node, Project

Placed = tuple[Node, Collection[str]]
"""A node with a clause on it, and which of its columns are results of aggregates."""


class Clause:
    """Something that a query asks beside its answer: a frozen dataclass, checked when it is made.

    - `word` and `parts` are its SQL syntax, `WITH word parts`; each part fills a field. `lead` is
      WITH or empty.
    - `method` is the stream method that asks for the same. It takes the arguments of the static
      method `called` if the class has one, else the fields. `example` is a call of it.
    - `beside` adds columns of the aggregate's type after each aggregate; its entries are endings of
      their names. `last` adds columns at the end, with their types.
    - `sheds`: it drops tuples. `early`: rows come before the last one of their window and group.
      `whole`: it belongs to a whole query, even a UNION ALL.
    - `only_for` and `remedy` go into the error if the query has nothing to put it on.

    Lowering finds a clause on an aggregate or a join by its word.
    """

    word: ClassVar[str]
    lead: ClassVar[str] = "WITH"
    parts: ClassVar[tuple[SyntaxPart, ...]]
    method: ClassVar[str] = ""
    example: ClassVar[str] = ""
    beside: ClassVar[tuple[str, ...]] = ()
    last: ClassVar[tuple[tuple[str, pa.DataType], ...]] = ()
    sheds: ClassVar[bool] = False
    early: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    only_for: ClassVar[str] = "is for an aggregate"
    remedy: ClassVar[str] = "Write it after the SELECT that has the aggregate."

    def __str__(self) -> str:
        """The clause in SQL, without WITH; clauses that differ have different texts."""
        words = [self.word]
        for part in self.parts:
            value = getattr(self, part.field)
            if value is None or (part.quiet and value == getattr(type(self), part.field)):
                continue
            words += [part.word, part.value.text(value)]
        return " ".join(filter(None, words))

    @property
    def shown(self) -> str:
        """Its text in the node's line of `explain`; may be empty."""
        return str(self)

    @property
    def where(self) -> str:
        """How its errors begin."""
        return f"{self.lead} {self}".lstrip()

    def check(self, aggregate: Aggregate) -> None:
        """Raises if the aggregate cannot have it; called whenever an aggregate is built with it."""

    def meet(self, other: Clause, aggregate: Aggregate) -> None:
        """Raises if it cannot be combined with another clause of the same aggregate."""
        if other.word == self.word:
            raise QueryError(
                self.where,
                f"an aggregate has one {f'{self.lead} {self.word}'.lstrip()}",
                f"also {other}",
                "Leave one of them out.",
            )

    def put(self, node: Node) -> Node:
        """The query with this clause on its topmost aggregate.

        Nodes above the aggregate pass on the columns that the clause adds.
        """
        return self._put(node)[0]

    def placed(self, node: Node) -> Placed | None:
        """The node with this clause on it; None if it belongs to the node below."""
        if not isinstance(node, Aggregate):
            return None
        return self.on(node), frozenset(name for name, _ in node.aggregates)

    def on(self, aggregate: Aggregate) -> Node:
        """An aggregate with this clause added to its others."""
        for other in aggregate.clauses:
            self.meet(other, aggregate)
        self.check(aggregate)
        names = [name for name, _ in aggregate.aggregates]
        refuse_taken(aggregate.names, self._added(names), self.where)
        return self.taken(aggregate)

    def taken(self, aggregate: Aggregate) -> Node:
        """The node for an aggregate that can have this clause."""
        others = (other for other in aggregate.clauses if other.word != self.word)
        return replace(aggregate, clauses=(*others, self))

    def _put(self, node: Node) -> Placed:
        placed = self.placed(node)
        if placed is not None:
            return placed
        if not node.windowed or len(node.children) != 1:
            raise QueryError(self.where, self.only_for, "a query without one", self.remedy)
        child, results = self._put(node.children[0])
        if not isinstance(node, Project):
            return replace(node, child=child), results  # type: ignore[arg-type]
        columns: list[NamedExpr] = []
        for name, expression in node.columns:
            columns.append((name, expression))
            if is_column(expression, results):
                columns += [(name + end, column(expression.name + end)) for end in self.beside]
            elif self.beside:
                self._refuse_computed(expression, results)
        kept = [name for name, expression in node.columns if is_column(expression, results)]
        refuse_taken(node.names, self._added(kept), self.where)
        columns += [(name, column(name)) for name, _ in self.last]
        return Project(child, tuple(columns)), frozenset(kept)

    def _added(self, results: Collection[str]) -> list[str]:
        """The columns that it adds to these results."""
        ends = [name + end for name in results for end in self.beside]
        return [*ends, *(name for name, _ in self.last)]

    def _refuse_computed(self, expression: exp.Expression, results: Collection[str]) -> None:
        """Raises for columns computed from aggregates, because their interval is not known."""
        if any(is_column(part, results) for part in expression.find_all(exp.Column)):
            raise QueryError(
                self.where,
                "each column must be a key or one aggregate, because the error of what is computed "
                "from several is not known",
                expression_text(expression),
                "Select the aggregates, and compute with them in a query around this one: "
                f"SELECT a / b FROM (SELECT ... WITH {self.word} ...).",
            )


def check_share(where: str, what: str, value: object, example: str) -> None:
    """Raises for anything but a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QueryError(where, f"{what} must be a number", repr(value), "0.1 is 10 percent.")
    if not 0 < value < 1:
        requirement = f"{what} must be between 0 and 100 percent"
        raise QueryError(where, requirement, PERCENT.text(value), f"Write for example {example}.")
