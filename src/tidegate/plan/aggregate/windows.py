"""How windows are planned, by the class that a query has for each.

A kind of window that derives from another is planned as that one, unless it has a line of its own.
"""

from __future__ import annotations

from tidegate.plan.aggregate.sessions import SessionPlan
from tidegate.plan.aggregate.time import CalendarPlan, TimeWindowPlan
from tidegate.plan.aggregate.tuples import TupleWindowPlan
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.window import CalendarWindow, SessionWindow, TimeWindow, TupleWindow

WINDOWS: dict[type, type[WindowPlan]] = {
    TimeWindow: TimeWindowPlan,
    CalendarWindow: CalendarPlan,
    TupleWindow: TupleWindowPlan,
    SessionWindow: SessionPlan,
}


def window_plan(window: object) -> WindowPlan:
    """What a plan asks of a window."""
    return next(WINDOWS[kind] for kind in type(window).__mro__ if kind in WINDOWS)(window)
