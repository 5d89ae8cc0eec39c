"""Windowed aggregation row by row and window by window, without panes: the twin of the engine's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.oracle.calendar import calendar_windows_of
from tests.oracle.function import Row, User, one_zero, result, sort_key
from tidegate.operate.aggregate.pane.calendar_window import CalendarPanes
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow, WindowPanes


def windows(
    spec: AggregateSpec,
    rows: Sequence[Row],
    above_us: float = -math.inf,
    upto_us: float = math.inf,
    users: Mapping[str, User] | None = None,
) -> list[tuple[Any, ...]]:
    """(start, end, keys..., results...) of each window with above < end <= upto, in output order.

    `users` gives the plain function of each user aggregate, over the argument tuples of a group.
    """
    output = []
    for start, end, keys, members in groups_of(spec, rows):
        if above_us < end <= upto_us:
            results = tuple(result(f, members, users or {}) for f in spec.functions)
            output.append((start, end, *keys, *results))
    return output


def groups_of(
    spec: AggregateSpec, rows: Sequence[Row]
) -> Iterator[tuple[int, int, tuple[Any, ...], list[Row]]]:
    """Start, end, keys and tuples, in the total order, of every window and group."""
    groups: dict[tuple[int, int, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        for start, end in windows_of(spec.window, row["ts"]):
            key = tuple(sort_key(row[name]) for name, _ in spec.keys)
            groups.setdefault((end, start, key), []).append(row)
    for end, start, key in sorted(groups):
        members = sorted(groups[end, start, key], key=lambda r: (r["ts"], r["src"], r["seq"]))
        keys = tuple(one_zero(members[0][name]) for name, _ in spec.keys)
        yield start, end, keys, members


def windows_of(window: WindowPanes, ts: int) -> Iterator[tuple[int, int]]:
    """Where the windows begin and end that a time is in."""
    if isinstance(window, CalendarPanes):
        yield from calendar_windows_of(window, ts)
        return
    assert isinstance(window, PaneWindow)
    k = (ts - window.offset_us) // window.slide_us
    while ts < (start := k * window.slide_us + window.offset_us) + window.range_us:
        yield start, start + window.range_us
        k -= 1
