"""The rule that gives a stateless stream a unit of its own where it would be computed too often.

Stateless work is done on the way from the inputs to an operator. Two that read one stateless stream
do its work twice, which is cheaper than a unit between them. But where streams are made of streams,
each read twice, the inputs would be read twice as often with every level, and where each column is
said by two of the level before, expressions would double. Such a stream is computed once, and those
above it read its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tidegate.query.name import is_plain
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.node import (
    Branch,
    Filter,
    Input,
    Node,
    Project,
    TableJoin,
    Union,
    data_names,
)

OFTEN = 8
"""A stream that others read twice is shared where it reads an input so many times."""

LARGE = 1_000
"""A stream is shared where an expression above it would have more parts."""

Sizes = Mapping[str, int]
"""By column, the parts of the expression that it stands for; 1 for those that are not listed."""


def shared_nodes(roots: Iterable[Node]) -> frozenset[Node]:
    """The stateless nodes of a query that are worth a unit; costs one visit to each node."""
    roots = list(roots)
    nodes = list(dict.fromkeys(bottom_up(roots)))
    uses = Counter(child for node in nodes for child in node.children)
    uses.update(roots)
    sharing = _Sharing()
    for node in nodes:
        sharing.visit(node, often_used=uses[node] > 1)
    return frozenset(sharing.shared)


def joined_before_shedding(roots: Iterable[Node]) -> frozenset[Node]:
    """Joins to tables whose rows an operator sheds: it chooses among them, not among tuples."""
    found = set()
    for node in bottom_up(roots):
        below = list(node.children) if getattr(node, "shed", None) is not None else []
        while below:
            child = below.pop()
            if isinstance(child, TableJoin):
                found.add(child)
            elif not child.stateful:
                below += child.children
    return frozenset(found)


@dataclass
class _Sharing:
    shared: set[Node] = field(default_factory=set)
    paths: dict[Node, Counter[Node]] = field(default_factory=dict)
    """By node, how many ways lead to each input of its unit."""
    sizes: dict[Node, Sizes] = field(default_factory=dict)

    def visit(self, node: Node, often_used: bool) -> None:
        """Decide about a node whose children were visited."""
        if isinstance(node, Input) or node.stateful:
            return
        sizes = self._sizes(node)
        if max(sizes.values(), default=1) > LARGE:
            self.shared.update(c for c in node.children if self._can_be_shared(c))
            sizes = self._sizes(node)
        reads: Counter[Node] = Counter()
        for child in node.children:
            reads.update(self.paths[child] if self._is_inside(child) else {child: 1})
        self.sizes[node], self.paths[node] = sizes, reads
        if often_used and max(reads.values()) >= OFTEN:
            self.shared.add(node)

    def _is_inside(self, child: Node) -> bool:
        return child in self.paths and child not in self.shared

    def _can_be_shared(self, child: Node) -> bool:
        return self._is_inside(child) and bool(self.sizes[child])

    def _sizes(self, node: Node) -> Sizes:
        below = [self.sizes[c] if self._is_inside(c) else {} for c in node.children]
        if isinstance(node, Project):
            found = {n: _size(e, below[0]) for n, e in node.columns}
            return {n: size for n, size in found.items() if size > 1}
        if isinstance(node, Union):
            largest: dict[str, int] = {}
            for child, sizes in zip(node.children, below, strict=True):
                for name, own in zip(data_names(node), data_names(child), strict=True):
                    if sizes.get(own, 1) > largest.get(name, 1):
                        largest[name] = sizes[own]
            return largest
        if isinstance(node, Filter | Branch) and below[0]:
            return {**below[0], _CONDITION: _size(node.predicate, below[0])}
        return below[0]


_CONDITION = ""
"""The place of a condition among the sizes of columns."""


def _size(expression: exp.Expression, below: Sizes) -> int:
    if is_plain(expression):
        return below.get(expression.name, 1)
    columns = (part.name for part in expression.find_all(exp.Column)) if below else ()
    return sum(1 for _ in expression.walk()) + sum(below.get(name, 1) for name in columns)
