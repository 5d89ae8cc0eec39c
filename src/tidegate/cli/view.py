"""The live view of a running query, between the loop's batches and a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa
from rich.console import Console, RenderableType
from rich.live import Live

from tidegate.cli.panel import Scene, picture
from tidegate.cli.status import Status
from tidegate.clock import Clock, SystemClock
from tidegate.driver.metrics import BatchReport
from tidegate.sink.excerpt import Excerpt

REFRESHES_PER_SECOND = 4


class LiveView:
    """Shows what comes out of a query and how the run does.

    The loop only leaves numbers and at most twenty rows of text here; a thread of its own draws
    them, a few times a second, while the view is entered. On leaving it draws the last state and
    gives the terminal back, whatever happened.
    """

    def __init__(
        self,
        console: Console,
        title: str,
        start: str = "starting",
        clock: Clock | None = None,
        windows: bool = True,
    ) -> None:
        self._console = console
        self._title = title
        self._start = start
        self._clock = clock or SystemClock()
        self._windows = windows
        self._status = Status(self._clock.now())
        self._excerpt: Excerpt | None = None
        self._end: str | None = None
        self._live: Live | None = None
        self._stopped = False

    def __enter__(self) -> LiveView:
        # What others print goes above the picture, unless it goes elsewhere than this terminal.
        self._live = Live(
            console=self._console,
            get_renderable=self.picture,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stderr=sys.stderr.isatty(),
        )
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not self._stopped:
            self._end = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console.line()

    def continue_from(self, counters: Mapping[str, int]) -> None:
        """Count on from what a checkpoint has; called before the first batch."""
        self._status = Status(self._clock.now(), counters)

    def batch(self, report: BatchReport) -> None:
        """Called by the loop after each batch, with what it did."""
        self._status.add(report, self._clock.now())

    def rows(self, rows: pa.Table) -> None:
        """Called by the loop with the rows of a batch that are published, if only the last."""
        if rows.num_rows:
            self._excerpt = Excerpt.of(rows)

    def ending(self, state: str) -> None:
        """Say how the run ends or has ended."""
        self._end = state

    def stopped(self) -> None:
        """Say that somebody has ended the run; the error that it is left with is no failure."""
        self._end, self._stopped = "stopped", True

    def picture(self) -> RenderableType:
        """What the terminal shows now."""
        now = self._clock.now()
        scene = Scene(
            self._title, self._state(now), self._status, self._excerpt, self._windows, now
        )
        return picture(scene, self._console.width, self._console.height)

    def _state(self, now: float) -> str:
        if self._end is not None:
            return self._end
        if self._status.newest is None:
            return self._start
        return "waiting for input" if self._status.quiet(now) else "running"
