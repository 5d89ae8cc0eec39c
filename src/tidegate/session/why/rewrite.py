"""Makes a query of another one by a rule for some of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidegate.query.node.graph import bottom_up
from tidegate.query.node.node import Node

Rule = Callable[[Any, Sequence[Node]], Node | None]
"""What takes the place of a node over its rewritten children; None keeps it over them."""


def rewritten(root: Node, rule: Rule) -> Node:
    """The query with what the rule puts in place of nodes; the same object if it changes none."""
    made: dict[int, Node] = {}
    for node in bottom_up([root]):
        children = [made[id(child)] for child in node.children]
        kept = all(a is b for a, b in zip(children, node.children, strict=True))
        made[id(node)] = rule(node, children) or (node if kept else _over(node, children))
    return made[id(root)]


def _over(node: Any, children: Sequence[Node]) -> Node:
    """A node over other children that have the same columns."""
    if hasattr(node, "inputs"):
        united: Node = replace(node, inputs=tuple(children))
        return united
    names = ("left", "right") if len(children) > 1 else ("child",)
    made: Node = replace(node, **dict(zip(names, children, strict=True)))
    return made
