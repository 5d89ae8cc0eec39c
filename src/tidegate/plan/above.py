"""The stateless nodes above an operator, gathered from below and said over its own columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from tidegate.query.name import conjuncts, substitute
from tidegate.query.node import Branch, Filter, Node, Order, Project, Top


@dataclass
class Above:
    """What the nodes between an operator and one of those that take its rows do.

    `columns` says each column in those of the operator; `kept` are those that stay by themselves
    when others are selected.
    """

    columns: dict[str, exp.Expression]
    kept: tuple[str, ...] = ()
    where: list[exp.Expression] = field(default_factory=list)
    order: tuple[Order, ...] = ()
    limit: int | None = None
    selected: bool = False

    def climb(self, node: Node, base: Node) -> None:
        """Take the nodes from the operator's up to this one."""
        if node == base:
            return
        assert isinstance(node, Filter | Branch | Project | Top)
        self.climb(node.child, base)
        if isinstance(node, Filter | Branch):
            self.where += conjuncts(substitute(node.predicate, self.columns))
        elif isinstance(node, Project):
            held = {n: self.columns[n] for n in self.kept}
            self.columns = held | {n: substitute(e, self.columns) for n, e in node.columns}
            self.selected = True
        else:
            self.order = tuple(
                Order(substitute(o.expression, self.columns), o.descending, o.nulls_lead)
                for o in node.order
            )
            self.limit = node.limit
