"""The event time of the rows of a node: its column, and how far the event time is from it."""

from __future__ import annotations

from tidegate.batch import DECIDED
from tidegate.query.clause.clause import Clause
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node import Node, aggregate_of


def event_column(node: Node) -> str:
    """The column from which the event time of a row is told."""
    if node.windowed:
        return WINDOW[1] if emitting(node) is None else DECIDED
    return DECIDED if node.own_time else EVENT_TIME


def event_offset(node: Node) -> int:
    """Microseconds from `event_column` to the event time."""
    return aggregate_of(node).window.event_offset_us if node.windowed else 0


def emitting(node: Node) -> Clause | None:
    """The EMIT EVERY of the aggregate whose rows a windowed node gives, some before the end."""
    found: Clause | None = aggregate_of(node).clause("EMIT")
    return found
