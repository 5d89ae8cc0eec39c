"""Walks over a plan; a node that several others read is visited once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.query.node import Aggregate, Join, Node, ProcessNode


def bottom_up(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node after its children. Equal nodes that are two objects are both visited."""
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))


def has_join(node: Node) -> bool:
    """Whether a plan has a join."""
    return any(isinstance(part, Join) for part in bottom_up([node]))


def has_process(node: Node) -> bool:
    """Whether a plan has a user's own operator."""
    return any(isinstance(part, ProcessNode) for part in bottom_up([node]))


def has_aggregate(node: Node) -> bool:
    """Whether a plan has an aggregate."""
    return any(isinstance(part, Aggregate) for part in bottom_up([node]))
