"""Where the event time of a node's rows is found: a column, and an offset from it."""

from __future__ import annotations

from tidegate.batch import DECIDED
from tidegate.query.clause.clause import Clause
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node.node import Node, aggregate_of


def event_column(node: Node) -> str:
    """The column that gives the event time of a row."""
    if node.windowed:
        return WINDOW[1] if emitting(node) is None else DECIDED
    return DECIDED if node.own_time else EVENT_TIME


def event_offset(node: Node) -> int:
    """Microseconds to add to `event_column` for the event time."""
    return aggregate_of(node).window.event_offset_us if node.windowed else 0


def emitting(node: Node) -> Clause | None:
    """The EMIT EVERY clause of a windowed node's aggregate; None if rows come only when final."""
    found: Clause | None = aggregate_of(node).clause("EMIT")
    return found
