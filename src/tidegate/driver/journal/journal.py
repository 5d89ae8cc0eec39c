"""Keeps the journal of a run: in memory for who watches it, and in the checkpoint for later.

Nothing here fails or delays a batch: files are written by a thread of their own, after a batch or
while there is none, every few seconds, and at the end, without a sync. What a crash loses is the
last seconds of the journal, no state.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidegate import schedule
from tidegate.clock import Clock, utc_now
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.journal.files import JournalFiles
from tidegate.driver.journal.record import BatchRecord
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.metrics import Summary
from tidegate.errors import TidegateError
from tidegate.model.live.forecast import Forecast
from tidegate.sink.shown import first_rows_text

RUNNING, FAILED = "running", "failed"
KEPT = 2_048
KEPT_BYTES = 8 * 2**20
"""So many of the newest batches are in memory, and about so much of it they may take."""

_SHOWN_ROWS = 20
_ROWS_S = 0.5
"""How often rows are kept for those who look, at most."""

EVERY_S = 2.0
"""How often files are written while batches go on."""

ALIVE_S = 10.0
"""How often a run that has nothing to do says that it is there."""

_log = logging.getLogger(__name__)

Status = Callable[[], Mapping[str, Any]]


class Journal(BatchObserver):
    """Notes every batch of a run; any thread may ask for the newest.

    A batch costs a few assignments: what is noted becomes JSON when it is written or asked for.
    Holds KEPT batches, or as many as take KEPT_BYTES: with sixty-four instances some hundred.
    """

    def __init__(
        self,
        clock: Clock,
        summary: Summary,
        forecast: Forecast,
        paused: Callable[[], bool] = lambda: False,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._clock, self._now = clock, now
        self._summary, self._forecast, self._paused = summary, forecast, paused
        self._files: JournalFiles | None = None
        self._status: Status = dict
        self._origin = now().timestamp() - clock.now()
        """What the clock shows at the beginning of 1970."""
        self._kept: deque[BatchRecord] = deque()
        self._bytes = 0
        self._unwritten: deque[BatchRecord] = deque(maxlen=KEPT)
        self._rows: dict[str, pa.Table] = {}
        self._rows_at = -math.inf
        self._news = threading.Condition()
        self._over = threading.Event()
        self._state = RUNNING
        self._line: schedule.Line | None = None
        self._written_at = clock.now()

    def keep(self, files: JournalFiles, status: Status) -> None:
        """Have the batches of a run written, and its status with them; before it begins."""
        self._files, self._status = files, status
        try:
            files.clean()
        except (OSError, TidegateError) as error:
            _log.info("what an earlier run left of its journal stays: %s", error)

    @property
    def written(self) -> bool:
        """Whether it is kept in a checkpoint."""
        return self._files is not None

    @property
    def state(self) -> str:
        """How the run is: running, paused, finished, up to date, stopped, or failed with why."""
        paused = self._state == RUNNING and self._paused()
        return "paused" if paused else self._state

    def asked(self, question: Mapping[str, Any], outcome: str) -> None:
        """Note what somebody has asked of the query, and what became of it."""
        noted = {"at": self._now().isoformat(timespec="milliseconds"), "by": "ctl", **question}
        if self._files is None:
            return
        try:
            self._files.add_request({**noted, "outcome": outcome})
        except (OSError, TidegateError) as error:
            _log.warning("a request is not in the journal: %s", error)

    def committed(self, batch: CommittedBatch) -> None:
        expected = self._forecast.newest()
        predicted_ms = None if expected is None else round(expected.latency_s * 1e3, 3)
        record = BatchRecord.of(batch, self._origin + batch.started, predicted_ms)
        self._keep_rows(batch)
        if self._files is not None:
            self._unwritten.append(record)
        with self._news:
            self._kept.append(record)
            self._bytes += record.size_bytes
            while len(self._kept) > KEPT or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
                self._bytes -= self._kept.popleft().size_bytes
            self._news.notify_all()
        self._due(EVERY_S)

    def idle(self) -> None:
        """There is nothing to do: write what is left, and now and then that the run is there."""
        self._due(EVERY_S if self._unwritten else ALIVE_S)

    def ended(self, failure: BaseException | None) -> None:
        self._state = self._summary.state if failure is None else f"{FAILED}: {failure}"
        self._over.set()
        if self._files is not None and (self._kept or failure is not None):
            self._submit()
        if self._line is not None:
            self._line.shutdown()
        with self._news:
            self._news.notify_all()

    def newest_rows(self) -> dict[str, Any]:
        """Some of the newest rows: of each output, of those that came late, of those rejected."""
        return {name: _as_dict(rows) for name, rows in list(self._rows.items())}

    @property
    def kept_batches(self) -> int:
        return len(self._kept)

    def newest(self, after: int = -1) -> list[BatchRecord]:
        """What is in memory of the batches after one, oldest first."""
        with self._news:
            found = [record for record in reversed(self._kept) if record.batch > after]
        return found[::-1]

    def wait(self, after: int, seconds: float) -> None:
        """Block until there is a batch after one, the run is over, or the time is."""
        with self._news:
            self._news.wait_for(
                lambda: self._over.is_set() or (self._kept and self._kept[-1].batch > after),
                seconds,
            )

    def _keep_rows(self, batch: CommittedBatch) -> None:
        """Keep a few rows of what a batch put out; not of every batch, where they are quick."""
        if self._clock.now() - self._rows_at < _ROWS_S and not batch.manifest.finished:
            return
        for target, output in zip(batch.plan.targets, batch.work.staged.outputs, strict=True):
            found = {f"output {target.name or ''}": output.rows, "rejected": output.rejected}
            found |= {f"late {stream}": rows for stream, rows in output.late.items()}
            for name, rows in found.items():
                if rows is not None and rows.num_rows:
                    self._rows_at = self._clock.now()
                    self._rows[name] = _copied(rows)

    def _due(self, every_s: float) -> None:
        """Have what is new written beside the batches, where the last time was long enough ago."""
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


def _copied(rows: pa.Table) -> pa.Table:
    """The last rows, and nothing of the memory of the others."""
    last = range(max(rows.num_rows - _SHOWN_ROWS, 0), rows.num_rows)
    return rows.take(pa.array(last, pa.int64()))


def _as_dict(rows: pa.Table) -> dict[str, Any]:
    """As a page shows them: texts of cells, by row."""
    names, cells = first_rows_text(rows)
    return {"columns": names, "rows": [list(row) for row in cells]}


def _taken(waiting: deque[BatchRecord]) -> Iterable[BatchRecord]:
    """All that wait now, in their order; more may come meanwhile."""
    for _ in range(len(waiting)):
        yield waiting.popleft()
