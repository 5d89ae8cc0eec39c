"""Cuts the graph of logical nodes into units; each becomes a subquery of the plan.

A **unit** is one stateful node with the stateless nodes that follow it, or stateless nodes alone.
Its **tops** are the nodes whose rows are read outside: by other units, or by an output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.plan.physical import OPERATOR_CLOUD, OPERATOR_SET
from tidegate.plan.share import joined_before_shedding, shared_nodes
from tidegate.query.node.node import Branch, Filter, Input, Node, Project, TableJoin, Top
from tidegate.query.node.stream_pair import Paired


@dataclass(frozen=True)
class Consumed:
    """A node whose rows are read outside its unit; `output`: an output of the query reads them."""

    node: Node
    output: bool


@dataclass
class Unit:
    """What becomes one subquery."""

    base: Node
    tops: list[Consumed] = field(default_factory=list)

    def port(self, node: Node, output: bool) -> int:
        """The port of a top; adds one unless the same rows in the same shape have one already."""
        for i, top in enumerate(self.tops):
            joined = isinstance(node, Paired | TableJoin)
            if top.node == node and (top.output == output or not joined):
                return i
        self.tops.append(Consumed(node, output))
        return len(self.tops) - 1


@dataclass
class Cutting:
    """The units of a query; each comes after the units that it reads from."""

    strategy: str = OPERATOR_SET
    shared: frozenset[Node] = frozenset()
    """Stateless nodes that are units of their own: several paths share them, or one sheds."""
    units: list[Unit] = field(default_factory=list)
    _numbers: dict[Node, int] = field(default_factory=dict)
    _demanded: set[Node] = field(default_factory=set)

    @classmethod
    def of(cls, roots: Iterable[Node], strategy: str, share: bool = True) -> Cutting:
        """Cut a query into units; with `share`, stateless nodes may be units of their own."""
        roots = list(roots)
        shared = shared_nodes(roots) if share else frozenset()
        found = cls(strategy, shared | joined_before_shedding(roots))
        for root in roots:
            found.place(root, output=True)
        return found

    def place(self, node: Node, output: bool = False) -> tuple[int, int]:
        """The unit and the port that emit the rows of a node; makes the unit if needed."""
        base = self._base(node)
        if base not in self._numbers:
            for child in base.children:
                self._demand(child)
            self._numbers[base] = len(self.units)
            self.units.append(Unit(base))
        number = self._numbers[base]
        return number, self.units[number].port(node, output)

    def unit_of(self, node: Node) -> int | None:
        """The unit of a node; None if its rows are computed only inside the prefixes of others."""
        return self._numbers.get(self._base(node))

    def apart(self, node: Node) -> bool:
        """Whether this node's rows come from another unit, not from the reader's prefix."""
        if isinstance(node, Input):
            return False
        if self.strategy == OPERATOR_CLOUD or node.stateful or node in self.shared:
            return True
        return self._base(node) is not node

    def _demand(self, node: Node) -> None:
        if node in self._demanded:
            return
        self._demanded.add(node)
        if self.apart(node):
            self.place(node)
            return
        for child in node.children:
            self._demand(child)

    def _base(self, node: Node) -> Node:
        """The node at which a node's unit begins: the stateful node below it, or itself."""
        chain = [node]
        while isinstance(chain[-1], Filter | Branch | Project | Top):
            if chain[-1] in self.shared:
                return node
            chain.append(chain[-1].child)
        base = chain[-1]
        if not base.stateful:
            return node
        following = chain[-2::-1]
        return base if _can_follow(following, alone=self.strategy == OPERATOR_CLOUD) else node


def _can_follow(nodes: list[Node], alone: bool) -> bool:
    """Whether these nodes, nearest first, can follow a stateful node in its unit.

    ORDER BY and LIMIT belong to a window's aggregate and can come once. A filter after LIMIT cannot
    follow: instances would filter before the rows of all of them are merged and limited. With
    `alone` (operator-cloud) only nodes up to an ORDER BY follow.
    """
    orders = [i for i, n in enumerate(nodes) if isinstance(n, Top)]
    if alone:
        return not nodes or orders == [len(nodes) - 1]
    if not orders:
        return True
    first = nodes[orders[0]]
    assert isinstance(first, Top)
    later = nodes[orders[0] + 1 :]
    limited = first.limit is not None or first.ranked is not None
    return len(orders) == 1 and not (limited and any(isinstance(n, Filter | Branch) for n in later))
