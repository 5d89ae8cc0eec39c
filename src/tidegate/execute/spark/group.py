"""Groups the Spark jobs of one run, so that they can be cancelled without those of others."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress

from pyspark import SparkContext

from tidegate import schedule
from tidegate.execute.runner import TaskCounts
from tidegate.execute.spark.failure import LOST, without_stacks


class JobGroup:
    """The job group of one run. A Spark job belongs to it if its thread has called `join`."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._name = f"tidegate-{schedule.current().token()}"
        self._thread = threading.local()

    def join(self) -> None:
        """Add the jobs of this thread to the group; costs one call to Spark, once per thread."""
        if not getattr(self._thread, "joined", False):
            self._context.setJobGroup(self._name, "tidegate", interruptOnCancel=True)
            self._thread.joined = True

    def cancel(self) -> None:
        """Cancel the running jobs; whoever waits for one gets an error at once."""
        with suppress(*LOST), without_stacks():  # without Spark nothing runs
            self._context.cancelJobGroup(self._name)


GONE = (*LOST, AttributeError)
"""The exceptions of a context that has ended, or is about to."""


class TaskProgress:
    """Asks Spark for the progress of its stages, without ever blocking the caller.

    A thread of its own asks, because a JVM that hangs does not answer. Each answer is the one to
    the previous question, so it is a moment old.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._line = schedule.current().line("tidegate-progress")
        self._asked: Future[TaskCounts] | None = None
        self._newest = TaskCounts(0, 0)

    def tasks(self) -> TaskCounts:
        """The tasks done and all tasks of the running stages; always called by the same thread."""
        if self._asked is None:
            try:
                self._asked = self._line.submit(self._ask)
            except RuntimeError:  # closed, or Python is ending
                return TaskCounts(0, 0)
        elif self._asked.done():
            self._newest, self._asked = self._asked.result(), None
        return self._newest

    def close(self) -> None:
        self._line.shutdown(wait=False)

    def _ask(self) -> TaskCounts:
        try:
            tracker = self._context.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except GONE:
            return TaskCounts(0, 0)
        known = [stage for stage in stages if stage is not None]
        return TaskCounts(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))
