"""How windows are planned: by their class, or by the one that they derive from."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tidegate.errors import QueryError
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.plan.aggregate.time import TimeWindowPlan
from tidegate.plan.aggregate.tuples import TupleWindowPlan
from tidegate.plan.aggregate.windows import WINDOWS, window_plan
from tidegate.query import window as query_window
from tidegate.query.window import TimeWindow, TupleWindow


@dataclass(frozen=True)
class Hourly(TimeWindow):
    """A kind of window that has no line of its own."""


def test_every_kind_of_window_can_be_planned() -> None:
    made = {*query_window.WINDOWS.values(), query_window.CalendarWindow}
    assert set(WINDOWS) == made


def test_a_kind_that_derives_from_another_is_planned_as_that_one() -> None:
    planned = window_plan(Hourly(6, 4))
    assert type(planned) is TimeWindowPlan
    assert planned.panes == PaneWindow(6, 4)
    assert type(window_plan(TupleWindow(3, 3))) is TupleWindowPlan


def test_answers_from_panes_are_refused_over_windows_that_have_none() -> None:
    with pytest.raises(QueryError, match=r"is for windows of time; got \[ROWS 3\]\. Write"):
        _ = window_plan(TupleWindow(3, 3)).panes
