"""Jobs as bytes for workers, which may hold classes of a script: what lasts is left out of them."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from typing import Any

from pyspark import cloudpickle

from tidegate.execute.executor import Draft
from tidegate.execute.job import Job
from tidegate.execute.lasting import Lasting
from tidegate.execute.task_runner import TaskRunner
from tidegate.execute.work import Work


class Packing:
    """Leaves the jobs of a query with a runner of tasks."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._lasting = Lasting(cloudpickle.dumps)

    def know(self, drafts: Sequence[Draft]) -> None:
        """Take the parts of the plan that these jobs have, and later ones will."""
        if not self._runner.stays:
            return
        for draft in drafts:
            subquery = draft.job.subquery
            operator = subquery.operator
            self._lasting.add(subquery.prefixes)
            self._lasting.add(subquery.streams)
            self._lasting.add(subquery.ports)
            self._lasting.add(operator)
            for part in (*subquery.ports, *vars(operator).values()):
                if dataclasses.is_dataclass(part):
                    self._lasting.add(part)

    def leave(self, job: Job, name: str, what: Any) -> Work:
        """Leave a job, or something with jobs in it, for the tasks of a job."""
        packer = _Packer(self._lasting)
        packer.dump(what)
        for key in packer.named:
            self._runner.leave(job, f"{name} {key}", self._lasting.data_of(key))
        return self._runner.leave(job, name, packer.file.getvalue())


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, lasting: Lasting) -> None:
        self.file = io.BytesIO()
        self.named: dict[str, None] = {}
        self._lasting = lasting
        super().__init__(self.file)

    def persistent_id(self, thing: Any) -> str | None:
        key = self._lasting.key_of(thing)
        if key is not None:
            self.named[key] = None
        return key
