"""When the rows of a node happen, between its implicit columns and the operator that reads it."""

from __future__ import annotations

from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node import Node, aggregate_of
from tidegate.query.window import TimeWindow


def event_column(node: Node) -> str:
    """The implicit column from which the event time of a row is told."""
    return WINDOW[1] if node.windowed else EVENT_TIME


def event_offset(node: Node) -> int:
    """Microseconds from `event_column` to the event time.

    A window of time happens in its last instant, so that a coarser one over it takes it in; a
    window of tuples happens with its newest tuple.
    """
    return -1 if node.windowed and isinstance(aggregate_of(node).window, TimeWindow) else 0
