"""Windows: the interface of each kind, and the table of kinds for SQL and Python."""

from tidegate.query.window.calendar import CalendarWindow
from tidegate.query.window.range import Distance, TimeWindow
from tidegate.query.window.registry import WINDOWS, read_window
from tidegate.query.window.rows import TupleWindow, whole_rows
from tidegate.query.window.session import SessionWindow
from tidegate.query.window.window import JoinWindow, Use, Window

__all__ = [
    "WINDOWS",
    "CalendarWindow",
    "Distance",
    "JoinWindow",
    "SessionWindow",
    "TimeWindow",
    "TupleWindow",
    "Use",
    "Window",
    "read_window",
    "whole_rows",
]
