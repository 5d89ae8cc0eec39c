"""Runs rounds of tasks on a crew of workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.execute.job import Job
from tidegate.execute.resident.crew import Crew
from tidegate.execute.resident.message import DropRequest
from tidegate.execute.runner import TaskCounts
from tidegate.execute.task_runner import Task, TaskRunner
from tidegate.execute.work import SentWork, TaskWork, key_of

_START_S = 10.0
_MOMENT_S = 0.05


class CrewTasks(TaskRunner):
    """Runs functions on the workers of a crew; who starts those is another's business.

    What it raises is what `Crew.run` does.
    """

    stays = True

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._round = (0, 0)
        """What was answered before the round that runs, and the tasks of this."""
        self._job = ""
        self._data: dict[str, bytes] = {}

    def groups(self, instances: int) -> int:
        return min(instances, self.crew.size)

    def leave(self, job: Job, name: str, data: bytes) -> TaskWork:
        """Keep the bytes for the workers that will do the job, until there is another."""
        if self._job != job.name:
            self._job, self._data = job.name, {}
        key = key_of(data)
        self._data[key] = data
        return SentWork(key)

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        self._round = (self.crew.answered, count)
        return self.crew.run([(task, work, number, self._data) for number in range(count)])

    def drop(self, jobs: Sequence[Job]) -> None:
        self.crew.tell(DropRequest(tuple(job.name for job in jobs)))

    def tasks(self) -> TaskCounts:
        before, count = self._round
        return TaskCounts(min(self.crew.answered - before, count), count)

    def start(self) -> bool:
        self.crew.ready.wait(_START_S)  # who is not there by then is waited for by the work
        return True

    def until_at_work(self) -> None:
        self.crew.at_work.wait(_MOMENT_S)

    def abort(self) -> None:
        self.crew.abort(AbortedError())

    def close(self) -> None:
        self.crew.close()


class AbortedError(Exception):
    """The run was aborted."""
