"""Windows: what each kind says about itself, and the table that SQL and Python read."""

from tidegate.duration import duration_text
from tidegate.query.duration import Duration, duration_us, scaled_us, unit_us
from tidegate.query.window.range import Distance, TimeWindow
from tidegate.query.window.registry import WINDOWS, read_window
from tidegate.query.window.rows import TupleWindow, whole_rows
from tidegate.query.window.window import JoinWindow, Use, Window

__all__ = [
    "WINDOWS",
    "Distance",
    "Duration",
    "JoinWindow",
    "TimeWindow",
    "TupleWindow",
    "Use",
    "Window",
    "duration_text",
    "duration_us",
    "read_window",
    "scaled_us",
    "unit_us",
    "whole_rows",
]
