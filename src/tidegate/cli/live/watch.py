"""Runs a loop in front of a person: the live view and the log on one terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.cli.stop import Stopped, run_stoppable
from tidegate.clock import Clock
from tidegate.driver.loop import Loop
from tidegate.driver.report.metrics import Summary
from tidegate.driver.report.window_log import newest_figures
from tidegate.plan.physical import Plan
from tidegate.query.name import WINDOW
from tidegate.session.place import Place

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.cli.live.view import LiveView


def view_of(
    console: Console | None,
    title: str,
    plan: Plan,
    place: Place,
    clock: Clock | None = None,
) -> LiveView | None:
    """The view of a plan's run; None without a terminal."""
    if console is None:
        return None
    from tidegate.cli.live.view import LiveView  # and all that draws

    windowed = plan.port(plan.targets[0].edge).time == WINDOW[1]
    start = "starting Spark" if place.on_spark else "starting"
    names = [target.name for target in plan.targets]
    return LiveView(console, title, start, clock, windows=windowed, outputs=names)


def run_until_signal(loop: Loop, view: LiveView | None = None) -> Summary:
    """Runs a loop to its end, in the view if there is one; raises Stopped if signals end it first.

    See `stop` for what they do.
    """
    if view is None or loop.manifest.finished:
        return run_stoppable(loop, lambda state: None)
    view.continue_from(loop.summary.counters)
    view.attend(
        lambda: loop.controls.rows_at_hand,
        loop.tasks,
        loop.books.forecast.newest,
        lambda: newest_figures(loop.summary.windows()),
        loop.books.advice.lines,
    )
    with view:
        try:
            summary = run_stoppable(loop, view.ending)
        except Stopped:
            view.stopped()
            raise
        view.ending(summary.state)
    return summary
