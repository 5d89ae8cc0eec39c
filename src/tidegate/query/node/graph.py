"""Walks over a plan; a node that several others read is visited once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.query.node.logical import Logical
from tidegate.query.node.node import Node


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


def has(kind: type[Logical], node: Node) -> bool:
    """Whether a plan has a node of a kind."""
    return any(isinstance(part, kind) for part in bottom_up([node]))
