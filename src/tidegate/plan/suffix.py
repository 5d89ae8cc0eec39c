"""The stateless nodes that follow an operator in its subquery, as one step over its columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from tidegate.query.name import conjuncts, substitute
from tidegate.query.node.node import Branch, Filter, Node, Order, Project, Top
from tidegate.query.ranking import TopRanked


@dataclass
class Suffix:
    """What the nodes between an operator and one consumer of its rows do; see also `Prefix`.

    Each expression is over the columns of the operator: the conditions of all filters, and what
    the last projection makes of the columns. `kept` are those that no projection drops.
    """

    columns: dict[str, exp.Expression]
    kept: tuple[str, ...] = ()
    where: list[exp.Expression] = field(default_factory=list)
    order: tuple[Order, ...] = ()
    limit: int | None = None
    ranked: TopRanked | None = None
    selected: bool = False

    def extend(self, node: Node, base: Node) -> None:
        """Add the nodes that follow the operator, `base`, up to and with this one."""
        if node == base:
            return
        assert isinstance(node, Filter | Branch | Project | Top)
        self.extend(node.child, base)
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
            if node.ranked is not None:
                self.ranked = node.ranked.over(lambda e: substitute(e, self.columns))
