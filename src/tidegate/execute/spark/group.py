"""The Spark jobs of one run as a group, so that they can be cancelled and those of others not."""

from __future__ import annotations

import threading
from contextlib import suppress

from pyspark import SparkContext

from tidegate import schedule
from tidegate.execute.spark.failure import LOST, without_stacks


class JobGroup:
    """Jobs of the threads that have joined; a job belongs to the group of the thread it is from."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._name = f"tidegate-{schedule.current().token()}"
        self._thread = threading.local()

    def join(self) -> None:
        """Let the jobs of this thread be of the group; costs one call of Spark, once."""
        if not getattr(self._thread, "joined", False):
            self._context.setJobGroup(self._name, "tidegate", interruptOnCancel=True)
            self._thread.joined = True

    def cancel(self) -> None:
        """Cancel what runs; whoever waits for a job of the group gets an error at once."""
        with suppress(*LOST), without_stacks():  # without Spark nothing runs
            self._context.cancelJobGroup(self._name)
