"""Walks through a plan, which is a graph: what several nodes read is met once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.query.node import Aggregate, Join, Node, ProcessNode


def bottom_up(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node after its children; equal nodes that are two objects are met twice."""
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
    """Whether a join is somewhere in a plan."""
    return any(isinstance(part, Join) for part in bottom_up([node]))


def has_process(node: Node) -> bool:
    """Whether a user's own operator is somewhere in a plan."""
    return any(isinstance(part, ProcessNode) for part in bottom_up([node]))


def has_aggregate(node: Node) -> bool:
    """Whether an aggregate is somewhere in a plan."""
    return any(isinstance(part, Aggregate) for part in bottom_up([node]))
