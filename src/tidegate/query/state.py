"""Which part of a plan keeps nothing between tuples, so that Spark may evaluate it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.query.node import Node


def stateless(node: Node) -> bool:
    """Whether every row comes of one tuple alone, so that Spark can be asked for its columns."""
    return not node.stateful and all(stateless(c) for c in node.children)


def is_after_state(node: Node) -> bool:
    """Whether kernels alone can evaluate expressions over these rows: Spark has seen its last.

    A side of a join may still have been computed by Spark, so lowering decides what is over it.
    """
    if len(node.children) < 2:
        return node.stateful or any(is_after_state(c) for c in node.children)
    if node.stateful:
        return not any(stateless(c) for c in node.children)
    return not stateless(node)
