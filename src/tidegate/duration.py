"""Lengths of time as text, in the largest unit that measures them exactly."""

from __future__ import annotations

from tidegate.microsecond import UNITS_US


def duration_text(us: int) -> str:
    """A duration as `explain` and SQL show it."""
    for name, size in reversed(UNITS_US.items()):
        if us and us % size == 0:
            count = us // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "0 seconds"


def window_text(range_us: int, slide_us: int) -> str:
    """A window of time as SQL writes it."""
    text = f"RANGE {duration_text(range_us)}"
    return text if slide_us == range_us else f"{text} SLIDE {duration_text(slide_us)}"


def rows_text(rows: int, slide: int) -> str:
    """A window of tuples as SQL writes it."""
    return f"ROWS {rows}" if slide == rows else f"ROWS {rows} SLIDE {slide}"
