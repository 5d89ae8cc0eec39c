"""Pickles jobs for workers; parts of the plan that never change are sent once."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import cloudpickle

from tidegate.execute.job import Job
from tidegate.execute.plan_part import LastingParts, part
from tidegate.execute.runner import Draft
from tidegate.execute.task_runner import TaskRunner
from tidegate.execute.work import TaskWork
from tidegate.operate.operator import Operator
from tidegate.plan.physical import Subquery


class Packing:
    """Leaves the jobs of a query with a runner of tasks."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._lasting = LastingParts(cloudpickle.dumps)
        self._plan: dict[str, Subquery] = {}
        """The subqueries of the plan, by key."""

    def know(self, drafts: Sequence[Draft]) -> None:
        """Register the parts of the plan in these jobs, which later jobs will have too.

        Call it only if workers stay: others do not keep what they were sent.
        """
        for draft in drafts:
            subquery = draft.job.subquery
            operator = subquery.operator
            self._lasting.add(subquery)
            self._lasting.add(operator)
            self._plan[subquery.key] = subquery
            for plan_part in (*subquery.ports, *vars(operator).values()):
                if dataclasses.is_dataclass(plan_part):
                    self._lasting.add(plan_part)

    def leave(self, job: Job, name: str, what: Any) -> TaskWork:
        """Make `what`, a job or something with jobs in it, available to the tasks of `job`."""
        packer = _Packer(self._lasting, self._plan)
        packer.dump(what)
        for key in packer.named:
            self._runner.leave(job, f"{name} {key}", self._lasting.data_of(key))
        return self._runner.leave(job, name, packer.file.getvalue())


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, lasting: LastingParts, plan: Mapping[str, Subquery]) -> None:
        self.file = io.BytesIO()
        self.named: dict[str, None] = {}
        self._lasting = lasting
        self._plan = plan
        super().__init__(self.file)

    def reducer_override(self, thing: Any) -> Any:
        """Called by pickle for each object; replaces registered parts by their keys."""
        key = self._lasting.key_of(thing)
        if key is not None:
            self.named[key] = None
            return part, (key,)
        if type(thing) is Subquery and thing.key in self._plan:
            planned = self._plan[thing.key]
            if dataclasses.replace(planned, operator=thing.operator) == thing:
                return _with_operator, (planned, thing.operator)
        return super().reducer_override(thing)


def _with_operator(planned: Subquery, operator: Operator) -> Subquery:
    """The planned subquery with the operator of a batch; unpickling calls it."""
    return dataclasses.replace(planned, operator=operator)
