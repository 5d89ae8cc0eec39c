"""The kinds of windows that an aggregate may be over, by the class that a query has for each."""

from __future__ import annotations

from tidegate.plan.aggregate.time import TimeWindowPlan
from tidegate.plan.aggregate.tuples import TupleWindowPlan
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.window import TimeWindow, TupleWindow

WINDOWS: dict[type, type[WindowPlan]] = {
    TimeWindow: TimeWindowPlan,
    TupleWindow: TupleWindowPlan,
}


def window_plan(window: object) -> WindowPlan:
    """What a plan asks of a window."""
    return WINDOWS[type(window)](window)
