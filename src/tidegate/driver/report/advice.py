"""Says what a running query needs of its streams: DISORDER for rows that come late, IDLE for a
source that is silent while others go on."""

from __future__ import annotations

import logging
import math

from tidegate.batch import MIN_US
from tidegate.calendar.duration import duration_text
from tidegate.clock import Clock
from tidegate.driver.batch_observer import BatchObserver
from tidegate.driver.inputs import Inputs
from tidegate.driver.metric.metric import CommittedBatch
from tidegate.driver.report.side import ANEW, late_advice
from tidegate.gate.extent import Holder
from tidegate.plan.physical import Plan

SILENT_S = 10.0
"""A silent source that holds the watermark back is named after so long."""

_LOOK_S = 1.0

_log = logging.getLogger(__name__)


class InputAdvice(BatchObserver):
    """Makes lines of advice: once in the log, and in status and live view while they apply.

    `late_level` is the log level for late rows; it is low if a summary will soon report them. Grows
    with the streams of a query and the sources that were silent.
    """

    def __init__(self, plan: Plan, inputs: Inputs, clock: Clock, late_level: int) -> None:
        self._late_level = late_level
        self._plan = plan
        self._inputs = inputs
        self._clock = clock
        self._looked_at = -math.inf
        self._disorder: list[str] | None = None
        self._silent: Holder | None = None
        self._told: set[str] = set()

    def lines(self) -> list[str]:
        """The current lines; called by any thread."""
        silent = self._silent
        told = [] if silent is None else [self._silence(silent)]
        return [*(self._disorder or ()), *told]

    def committed(self, batch: CommittedBatch) -> None:
        """Check the first batch with rows for partitions or files that are out of order."""
        if self._disorder is None and batch.manifest.counters.get("rows_in", 0):
            self._disorder = late_advice(batch.manifest.sides, batch.manifest.counters)
            for line in self._disorder:
                _log.log(self._late_level, "%s", line)
        self.look()

    def look(self) -> None:
        """Check for a silent source, at most once a second; also called between batches."""
        now = self._clock.now()
        if now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        silent = self._inputs.silent(now, SILENT_S)
        if silent is not None and silent.source not in self._told:
            self._told.add(silent.source)
            _log.warning("%s", self._silence(silent))
        if silent is None:
            self._told.clear()
        self._silent = silent

    def _silence(self, holder: Holder) -> str:
        stream = self._plan.streams[holder.stream].name
        past = duration_text(int(max(self._clock.now() - holder.spoke_at, 0.0)) * 1_000_000)
        since = " and has no row yet" if holder.newest_us == MIN_US else ""
        return (
            f"stream {stream}: {holder.source} has been silent for {past}{since}; the watermark "
            f"waits for it. Write IDLE {duration_text(int(SILENT_S * 1e6)).upper()} after its TIME "
            f"to let the watermark pass silent sources, {ANEW}."
        )
