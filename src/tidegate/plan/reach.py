"""How far the event times of rows may be after those of tuples: windows and waits together."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.batch import MAX_US
from tidegate.calendar.duration import duration_text
from tidegate.calendar.microsecond import LAST_US
from tidegate.errors import QueryError
from tidegate.query.node.node import Node


def check_reach(nodes: Iterable[Node]) -> None:
    """Refuse windows over windows so long that the last event time and all of them overflow."""
    total_us = _reach_us(nodes)
    if total_us > MAX_US - LAST_US:
        raise QueryError(
            "query",
            "the RANGEs of its windows must not exceed 280,000 years together",
            duration_text(total_us),
            "Write shorter ones; all event times lie within 10,000 years.",
        )


def reach_us(node: Node) -> int:
    """How much later than the newest tuple of the input rows of a node may be."""
    found: dict[int, Node] = {}
    left = [node]
    while left:
        each = left.pop()
        if id(each) not in found:
            found[id(each)] = each
            left += each.children
    return _reach_us(found.values())


def _reach_us(nodes: Iterable[Node]) -> int:
    return sum(node.reach_us for node in nodes)
