"""Which part of a plan keeps nothing between tuples, between nodes and what may stand above."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.query.node import Node


def stateless(node: Node) -> bool:
    """Whether every row comes of one tuple alone, so that Spark can be asked for its columns."""
    return not node.stateful and all(stateless(c) for c in node.children)
