"""Runs rounds of tasks on a crew of workers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

from tidegate.execute.job import Job
from tidegate.execute.resident.crew import Crew
from tidegate.execute.resident.message import DropRequest
from tidegate.execute.resident.unit import AskedTask
from tidegate.execute.runner import TaskCounts
from tidegate.execute.shared_task import KEEPING
from tidegate.execute.task_runner import StayingTasks, Task
from tidegate.execute.work import SentWork, TaskWork, key_of

_START_S = 10.0
_MOMENT_S = 0.05

_JOBS = 64
"""The bytes of so many jobs are kept: enough for the jobs of a batch and of the next one."""


class CrewTasks(StayingTasks):
    """Runs functions on the workers of a crew; a subclass starts the workers.

    Raises the errors of `Crew.run`.
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._round = (0, 0)
        """The units answered before the current round, and the number of its tasks."""
        self._lock = Lock()
        self._data: dict[str, dict[str, bytes]] = {}
        """The bytes left for each job, by its name, newest last."""

    def groups(self, instances: int) -> int:
        return min(instances, self.crew.size)

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        """Keep the bytes until a worker of the job needs them; drops those of the oldest jobs."""
        key = key_of(data)
        with self._lock:
            left = self._data[job.name] = self._data.pop(job.name, {})
            left[key] = data
            while len(self._data) > _JOBS:
                del self._data[next(iter(self._data))]
        return SentWork(key)

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        self._round = (self.crew.answered, count)
        own = task in KEEPING and count <= self.crew.size
        return self.crew.run(self._asked(job, count, task, work), own)

    def begin(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Future[Any]]:
        return self.crew.begin(self._asked(job, count, task, work), later=True)

    def _asked(self, job: Job, count: int, task: Task, work: TaskWork) -> list[AskedTask]:
        data = self._data.get(job.name, {})
        return [(task, work, number, data) for number in range(count)]

    def drop(self, jobs: Sequence[str]) -> None:
        self.crew.tell(DropRequest(tuple(jobs)))

    def tasks(self) -> TaskCounts:
        before, count = self._round
        return TaskCounts(min(self.crew.answered - before, count), count)

    def start(self) -> bool:
        self.crew.ready.wait(_START_S)  # tasks wait for workers that come later
        return True

    def until_at_work(self) -> None:
        self.crew.at_work.wait(_MOMENT_S)

    def abort(self) -> None:
        self.crew.abort(AbortedError())

    def close(self) -> None:
        self.crew.close()


class AbortedError(Exception):
    """The run was aborted."""
