"""Describes the job of the workers on Spark's pages: the query, its batch and the rate of rows.

Spark takes a description when a job starts and has no call to change it. So we change the record of
the job that Spark's listener keeps for the pages: `LiveJob.description` of AppStatusListener, which
is private. If a version of Spark keeps it elsewhere, the first description stays.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from pyspark import SparkContext

from tidegate import schedule
from tidegate.execute.spark.failure import without_stacks
from tidegate.execute.spark.group import GONE

_log = logging.getLogger(__name__)

EVERY_S = 1.0
"""The least time between two descriptions."""


class JobDescription:
    """Tells Spark's pages how far a query is, if there are any; who tells never waits."""

    def __init__(self, context: SparkContext, group: str, title: str) -> None:
        self._context, self._group, self._title = context, group, title
        self._shown = context.uiWebUrl is not None
        self._clock = schedule.current().clock
        self._line = schedule.current().line("tidegate-description")
        self._telling: Future[None] | None = None
        self._batch, self._rows, self._since = -1, 0, self._clock.now()
        self._live: dict[int, Any] = {}
        """What the listener has of the newest job, by its number."""

    def at_start(self) -> str:
        """What is said when the job starts."""
        return f"{self._title}: tasks that stay for all batches"

    def note(self, batch: int, rows: int) -> None:
        """A round of tasks begins, of a batch of so many rows; the first of a batch counts."""
        if not self._shown or batch == self._batch:
            return
        self._batch, now = batch, self._clock.now()
        passed = now - self._since
        told = self._telling is None or self._telling.done()
        if passed >= EVERY_S and told:
            rate = self._rows / passed
            text = f"{self._title}: batch {batch}, {rate:,.0f} rows/s"
            self._telling = self._line.submit(self._tell, text)
            self._rows, self._since = 0, now
        self._rows += rows

    def close(self) -> None:
        self._line.shutdown(wait=False)

    def _tell(self, text: str) -> None:
        try:
            with without_stacks():
                self._describe(text)
        except GONE as error:  # or this version of Spark keeps descriptions elsewhere
            self._shown = False
            _log.debug("Spark's pages do not tell how far the query is: %s", error)

    def _describe(self, text: str) -> None:
        jobs = self._context.statusTracker().getJobIdsForGroup(self._group)
        jvm, java = self._context._jvm, self._context._jsc
        assert jvm is not None
        assert java is not None
        store = java.sc().statusStore()
        number = max(jobs)
        if number not in self._live:
            listener = store.listener().get()
            held = _field(listener, "liveJobs").get(listener).get(number)
            if held.isEmpty():  # it has ended, and another is about to start
                return
            self._live = {number: held.get()}
        live = self._live[number]
        _field(live, "description").set(live, jvm.scala.Option.apply(text))
        live.write(store.store(), jvm.java.lang.System.nanoTime(), False)


def _field(of: Any, name: str) -> Any:
    field = of.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field
