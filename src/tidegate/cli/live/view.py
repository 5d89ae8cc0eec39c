"""Draws a running query on a terminal, a few times per second, in a thread of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pyarrow as pa
from rich.console import Console, RenderableType
from rich.live import Live

from tidegate.cli.live.panel import AtHand, Scene, picture
from tidegate.cli.live.status import ViewStatus
from tidegate.clock import Clock, SystemClock
from tidegate.driver.report.metrics import BatchReport
from tidegate.execute.runner import TaskCounts
from tidegate.model.live.expectation import Expectation
from tidegate.sink.excerpt import Excerpt

REFRESHES_PER_SECOND = 4

_NOTED_S = 1.0
"""A batch that runs longer than this is shown, and its tasks are asked for."""


class LiveView:
    """Shows a query's results and the progress of its run.

    The loop only stores numbers here, and at most twenty rows of text per output. A thread draws
    them a few times per second while the view is entered. On exit it draws the last state and
    restores the terminal, whatever happened.
    """

    def __init__(
        self,
        console: Console,
        title: str,
        start: str = "starting",
        clock: Clock | None = None,
        windows: bool = True,
        outputs: Sequence[str | None] = (None,),
    ) -> None:
        self._console = console
        self._title = title
        self._start = start
        self._clock = clock or SystemClock()
        self._windows = windows
        self._status = ViewStatus(self._clock.now())
        self._excerpts: dict[str | None, Excerpt | None] = dict.fromkeys(outputs)
        self._end: str | None = None
        self._live: Live | None = None
        self._stopped = False
        self._batch: tuple[int, float] | None = None
        self._cut = False
        self._rows: Callable[[], int] = lambda: 0
        self._tasks: Callable[[], TaskCounts | None] = lambda: None
        self._expected: Callable[[], Expectation | None] = lambda: None
        self._figures: Callable[[], str] = str
        self._advice: Callable[[], Sequence[str]] = tuple

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
        self._batch = None
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console.line()

    def continue_from(self, counters: Mapping[str, int]) -> None:
        """Continues the counts of a checkpoint; called before the first batch."""
        self._status = ViewStatus(self._clock.now(), counters)

    def attend(
        self,
        rows: Callable[[], int],
        tasks: Callable[[], TaskCounts | None],
        expected: Callable[[], Expectation | None] = lambda: None,
        figures: Callable[[], str] = str,
        advice: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Sets the functions that report the running batch's rows and tasks, and the model's
        prediction.

        `figures` returns those of the newest window as text, `advice` what streams need.
        """
        self._rows, self._tasks, self._expected = rows, tasks, expected
        self._figures, self._advice = figures, advice

    def step(self, step: str, batch: int) -> None:
        """The loop calls this when it reaches a step of a batch."""
        if step == "before gate":
            self._batch, self._cut = (batch, self._clock.now()), False
        elif step == "after gate":
            self._cut = True

    def batch(self, report: BatchReport) -> None:
        """The loop calls this after each batch."""
        self._batch = None
        self._status.add(report, self._clock.now())

    def rows(self, rows: pa.Table, output: str | None = None) -> None:
        """The loop calls this with a batch's published rows, maybe only the last ones."""
        if rows.num_rows and output in self._excerpts:
            self._excerpts[output] = Excerpt.of(rows)

    def ending(self, state: str) -> None:
        """Shows how the run ends or has ended."""
        self._end = state

    def stopped(self) -> None:
        """Notes that somebody stopped the run, so that the exception on exit is no failure."""
        self._end, self._stopped = "stopped", True

    def picture(self) -> RenderableType:
        """What the terminal shows now."""
        now = self._clock.now()
        scene = Scene(
            title=self._title,
            state=self._state(now),
            status=self._status,
            results=dict(self._excerpts),
            windows=self._windows,
            now=now,
            at_hand=self._at_hand(now),
            expected=self._expected(),
            figures=self._figures(),
            advice=self._advice(),
        )
        return picture(scene, self._console.width, self._console.height)

    def _at_hand(self, now: float) -> AtHand | None:
        """The running batch, if it is worth showing: the first one, and slow ones."""
        if self._batch is None:
            return None
        batch, began_at = self._batch
        first = self._status.newest is None
        if not first and now - began_at < max(_NOTED_S, 2 * self._status.median_s):
            return None
        if not self._cut:
            return None if not first else AtHand(batch, now - began_at, None, None)
        tasks = self._tasks()
        if tasks is None:  # Spark is being started, which is not the batch's own time
            self._batch = (batch, now)
        return AtHand(batch, now - began_at, self._rows(), tasks)

    def _state(self, now: float) -> str:
        if self._end is not None:
            return self._end
        if self._status.newest is None:
            if self._cut and self._tasks() is not None:
                return "running"
            return "reading input" if self._batch is not None and not self._cut else self._start
        waits = self._status.quiet(now) and not (self._batch is not None and self._cut)
        return "waiting for input" if waits else "running"
