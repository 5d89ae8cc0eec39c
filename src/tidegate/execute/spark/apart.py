"""Batches on tasks that stay and share no files with the driver, on other hosts perhaps.

A small batch goes by messages: every task reads it by itself, as sources and checkpoint are where
all can reach them, and answers with its rows, or leaves many there. A larger one is shuffled by a
job of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.clock import SystemClock
from tidegate.execute.executor import Draft
from tidegate.execute.job import Job, Outcome
from tidegate.execute.shared_task import by_instance, whole_task, whole_work
from tidegate.execute.spark import shared
from tidegate.execute.spark.packing import Packing
from tidegate.execute.spark.shuffle import ShuffleExecutor
from tidegate.execute.task_runner import TaskRunner
from tidegate.spans import Spans, added


class ApartExecutor:
    """Runs a job on tasks that stay where its rows are few, else by a shuffle."""

    def __init__(self, runner: TaskRunner, shuffle: ShuffleExecutor) -> None:
        self._runner = runner
        self._packing = Packing(runner)
        self._shuffle = shuffle

    def start(self, drafts: Sequence[Draft]) -> bool:
        """As `Executor.start` says."""
        self._packing.know(drafts)
        return self._runner.start()

    def run(self, job: Job) -> list[Outcome]:
        groups = self._runner.groups(job.mapping.running)
        if job.rows * groups > shared.SMALL_ROWS:
            return self._shuffle.run(job)
        spans = Spans(SystemClock())
        left = self._packing.leave(job, "job", job)
        work = self._runner.leave(job, "groups", whole_work(left, groups, apart=True))
        spans.mark("spark prepare")
        found = by_instance(self._runner.each(job, groups, whole_task, work))
        first, *others = self._shuffle.settled(job, found)
        spans.mark("spark instance job")
        return [first.with_spans(added([first.spans_ms, spans.spans_ms])), *others]
