"""Keeps the journal of a run: in memory for the live view, and in the checkpoint for later.

It neither fails nor delays a batch. A thread of its own writes the files every few seconds and at
the end, without syncing them. A crash loses the last seconds of the journal and no state.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from tidegate import schedule
from tidegate.clock import Clock, utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.journal.files import ALIVE_S, JournalFiles
from tidegate.driver.journal.recent import RecentBatches
from tidegate.driver.journal.record import BatchRecord
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.report.metrics import Summary
from tidegate.errors import TidegateError
from tidegate.model.live.forecast import Forecast

RUNNING, PAUSED, FAILED = "running", "paused", "failed"

EVERY_S = 2.0
"""The least time between two writes while batches go on."""

_log = logging.getLogger(__name__)

Status = Callable[[], Mapping[str, Any]]


class Journal(BatchObserver):
    """Records every batch of a run; `recent` has the newest, for any thread.

    A batch costs a few assignments: records become JSON only when they are written or asked for.
    """

    def __init__(
        self,
        clock: Clock,
        summary: Summary,
        forecast: Forecast,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._clock, self._now = clock, now
        self._summary, self._forecast = summary, forecast
        self.recent = RecentBatches()
        self.state = RUNNING
        """The state of the run: running, finished, up to date, stopped, or failed and why."""
        self._files: JournalFiles | None = None
        self._status: Status = dict
        self._origin = now().timestamp() - clock.now()
        """The wall time, in seconds since 1970, at which the clock shows 0."""
        self._unwritten: deque[BatchRecord] = deque(maxlen=self.recent.most)
        self._line: schedule.Line | None = None
        self._written_at = clock.now()

    def keep(self, files: JournalFiles, status: Status) -> None:
        """Write the batches and the status of the run to these files; call before it begins."""
        self._files, self._status = files, status
        try:
            files.clean()
        except (OSError, TidegateError) as error:
            _log.info("what an earlier run left of its journal stays: %s", error)

    @property
    def written(self) -> bool:
        """Whether the journal is also written to a checkpoint."""
        return self._files is not None

    def committed(self, batch: CommittedBatch) -> None:
        expected = self._forecast.newest()
        predicted_ms = None if expected is None else round(expected.latency_s * 1e3, 3)
        record = BatchRecord.of(batch, self._origin + batch.started, predicted_ms)
        if self._files is not None:
            self._unwritten.append(record)
        self.recent.add(record)
        self._due(EVERY_S)

    def idle(self) -> None:
        """Write what is left while the loop is idle, and from time to time a sign of life."""
        self._due(EVERY_S if self._unwritten else ALIVE_S)

    def ended(self, failure: BaseException | None) -> None:
        self.state = self._summary.state if failure is None else f"{FAILED}: {failure}"
        if self._files is not None and (len(self.recent) or failure is not None):
            self._submit()
        if self._line is not None:
            self._line.shutdown()
        self.recent.end()

    def shown_state(self, paused: bool) -> str:
        """The state for people: `state`, but `paused` for a running query that is paused."""
        return PAUSED if paused and self.state == RUNNING else self.state

    def _due(self, every_s: float) -> None:
        """Start writing new records in the thread, if the last write was `every_s` ago."""
        now = self._clock.now()
        if self._files is not None and now - self._written_at >= every_s:
            self._written_at = now
            self._submit()

    def _submit(self) -> None:
        if self._line is None:
            self._line = schedule.current().line("tidegate-journal")
        try:
            self._line.submit(self._write)
        except RuntimeError:  # Python is ending
            _log.debug("the end of the journal is not written")

    def _write(self) -> None:
        files = self._files
        if files is None:
            return
        try:
            files.add(_taken(self._unwritten))
            files.put_status({**self._status(), "told_at": self._now().timestamp()})
        except (OSError, TidegateError) as error:
            _log.info("the journal of this run is not written any more: %s", error)
            self._files, self._unwritten = None, deque(maxlen=0)


def _taken(waiting: deque[BatchRecord]) -> Iterable[BatchRecord]:
    """Remove and yield the records that wait now; more may be added meanwhile."""
    for _ in range(len(waiting)):
        yield waiting.popleft()
