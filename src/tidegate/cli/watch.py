"""Running a loop before a person: signals, the live view and the log on one terminal."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType
from typing import TextIO

import pyarrow as pa
from rich.console import Console

from tidegate.cli.view import LiveView
from tidegate.clock import Clock
from tidegate.driver.loop import Loop
from tidegate.driver.metrics import Summary
from tidegate.plan.physical import Plan
from tidegate.query.name import WINDOW
from tidegate.session.place import Place


def view_of(
    console: Console | None,
    title: str,
    plan: Plan,
    place: Place,
    clock: Clock | None = None,
) -> LiveView | None:
    """The view of a plan's run; None where there is no terminal to draw on."""
    if console is None:
        return None
    windowed = plan.port(plan.targets[0].edge).time == WINDOW[1]
    start = "starting Spark" if place.on_spark else "starting"
    names = [target.name for target in plan.targets]
    return LiveView(console, title, start, clock, windows=windowed, outputs=names)


def run_until_signal(loop: Loop, view: LiveView | None = None) -> Summary:
    """Run a loop; the first interrupt or termination signal ends it after the running batch.

    Arrow puts handlers of its own in the place of ours while it reads CSV on this thread, and one
    of them would cancel the read and with it the batch. So they are off for the time.
    """

    def end(number: int, frame: FrameType | None) -> None:
        loop.stop()
        if view is not None:
            view.ending("stopping after this batch")

    before = {s: signal.signal(s, end) for s in (signal.SIGINT, signal.SIGTERM)}
    pa.enable_signal_handlers(False)
    try:
        if view is None or loop.manifest.finished:
            return loop.run()
        view.continue_from(loop.summary.counters)
        view.attend(lambda: loop.rows_at_hand, loop.executor.tasks)
        with view:
            summary = loop.run()
            view.ending("finished" if summary.finished else "stopped")
        return summary
    finally:
        pa.enable_signal_handlers(True)
        for number, handler in before.items():
            signal.signal(number, handler)


class LogHandler(logging.StreamHandler[TextIO]):
    """Logs to standard error as it is at the time, because a live view puts itself before it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr
