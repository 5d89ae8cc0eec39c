"""The table of window plans, by the query's window class.

A window class without its own line is planned like its nearest base class that has one.
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
    """The plan of a window."""
    return next(WINDOWS[kind] for kind in type(window).__mro__ if kind in WINDOWS)(window)
