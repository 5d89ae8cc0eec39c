"""Runs the tasks of a simulated cluster: attempts may die, run twice, or go on after the end.

The driver works as on Spark on one host (`execute/spark/task_exchange.py`): it leaves the job in a
file; tasks read it, send parcels to each other and write segments and parts. A misbehaving attempt
is a process of its own, like a worker of Spark. It outlives the driver, and what it writes then
must do no harm.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from tidegate import schedule
from tidegate.errors import RunError, TidegateError
from tidegate.execute.exchange import LeftFile, Shipment, begin, leave, make, store_rows
from tidegate.execute.job import Job, Outcome
from tidegate.execute.large_output import cuts_of, written
from tidegate.execute.local import run_here
from tidegate.execute.map_ahead import MapsAhead
from tidegate.execute.runner import Draft, JobRunner, Outcomes, in_turn, side_by_side
from tidegate.execute.shared_task import (
    by_instance,
    instance_task,
    instance_work,
    map_task,
    merge_task,
    merge_work,
    whole_task,
    whole_work,
)
from tidegate.operate.instance_cache import forget
from tidegate.testing.simulation.process import Killed, SimulatedProcess
from tidegate.testing.simulation.world import World

T = TypeVar("T")

Task = Callable[[LeftFile, int], Any]

CRASH, TWICE, LATE = KINDS = "crash", "twice", "late"
"""How an attempt misbehaves. CRASH: it dies, and the task is tried again. TWICE: two attempts run
at the same time. LATE: it pauses, the task is tried again, and the first attempt goes on much
later, perhaps when its driver is dead."""


_ELSEWHERE = 0.3
"""The probability that a job's tasks find no kept state of the batch before."""

_AHEAD = 0.7
"""The probability that map tasks run beside the batch before, where they may."""


@dataclass(frozen=True)
class Attempt:
    """Attempt number `task` of a run misbehaves at its step number `step`.

    A LATE one goes on after `pause` more steps of the world. Where `of` names a task function, only
    attempts of it are counted; `merge_task` writes the parts of an output.
    """

    task: int
    kind: str
    step: int = 1
    pause: int = 0
    of: str = ""


class SimRunner(JobRunner):
    """Runs the tasks of a run in a simulated world.

    For each job one way to run it is drawn: here, or in one or two rounds of tasks. Tasks write
    outputs of at least `part_rows` rows, where the sink takes parts.
    """

    def __init__(
        self,
        world: World,
        seed: int | str,
        attempts: Sequence[Attempt] = (),
        part_rows: int = 12,
    ) -> None:
        self._world = world
        self._chance = random.Random(f"executor {seed}")
        self._attempts = {(a.of, a.task): a for a in attempts}
        self._part_rows = part_rows
        self._tasks: Counter[str] = Counter()
        self._exchanged = False
        self.ahead = MapsAhead(self._begin_map)
        self.happened: list[Attempt] = []
        self.ran = False
        """Whether a job was run; by then the driver has taken its checkpoint."""
        self.on_first_run: Callable[[], None] = lambda: None

    def drawn(self, choices: Sequence[T]) -> T:
        """A random one of these, by the seed of this run."""
        return self._chance.choice(choices)

    def run(self, job: Job) -> list[Outcome]:
        if not self.ran:
            self.ran = True
            self.on_first_run()
        ahead = self.ahead.take(job)
        way = 2 if ahead is not None else self._chance.randrange(3)
        if self._chance.random() < _ELSEWHERE:
            forget()
        if way == 0 and not self._attempts:
            return run_here(job)
        pickled = _pickled(job)
        if pickled is None:
            return run_here(job)  # it has classes of a script, which only Spark can pickle
        self._exchanged = True
        if ahead is None:
            begin(job)
        left = leave(job, "job", pickled)
        if way == 1:
            groups = self._chance.randint(1, job.mapping.running)
            work = leave(job, "groups", whole_work(left, groups))
            answers = by_instance(self._each(groups, whole_task, work))
        else:
            shipments = ahead
            if shipments is None:
                shipments = self._each(len(job.splits), map_task, left)
            work = leave(job, "shipments", instance_work(left, shipments))
            answers = self._each(job.mapping.running, instance_task, work)
        return self._settled(job, left, answers)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        return self._chance.random() < _AHEAD

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        self.ahead.begin([job for job in jobs if _pickled(job) is not None])

    def _begin_map(self, job: Job) -> list[Future[Shipment]]:
        self._exchanged = True
        begin(job)
        left = leave(job, "job", pickle.dumps(job))
        return [self._started(map_task, left, number) for number in range(len(job.splits))]

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return self.drawn((in_turn, side_by_side))(drafts, self.run)

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return schedule.current().start("task", lambda: function(*arguments))

    def release(self, jobs: Sequence[Job]) -> None:
        self.ahead.drop(jobs[0].batch)
        if self._exchanged:
            self._exchanged = False
            self.ahead.clear(jobs[0])

    def close(self) -> None:
        """Nothing is held open."""

    def _settled(self, job: Job, left: LeftFile, outcomes: list[Outcome]) -> list[Outcome]:
        rows = sum(o.rows for o in outcomes)
        if job.parts is None or rows < self._part_rows:
            return outcomes
        make(job)
        cuts = cuts_of(job, outcomes, -(-rows // self._part_rows))
        stored = [store_rows(job, outcome, least_bytes=0) for outcome in outcomes]
        work = leave(job, "merge", merge_work(left, stored, cuts))
        return written(job, outcomes, self._each(len(cuts) + 1, merge_task, work))

    def _each(self, count: int, task: Task, left: LeftFile) -> list[Any]:
        """Run all tasks of a round side by side, in threads of the driver's process."""
        running = [self._started(task, left, number) for number in range(count)]
        schedule.wait(running)
        return [_answer(future) for future in running]

    def _started(self, task: Task, left: LeftFile, number: int) -> Future[Any]:
        told = None
        for of in ("", task.__name__):
            self._tasks[of] += 1
            told = told or self._attempts.pop((of, self._tasks[of]), None)

        def work() -> Any:
            return task(left, number)

        def tried() -> Any:
            assert told is not None
            process, first = self._world.begin("worker", work)
            self._tell(process, told)
            if told.kind != TWICE:
                self._world.schedule.wait_for(
                    lambda: first.done() or process.paused, "an attempt of a task"
                )
                if first.done() and not isinstance(first.exception(), Killed):
                    return first.result()
            return work()

        name = f"{task.__name__} {number}"
        return schedule.current().start(name, work if told is None else tried)

    def _tell(self, process: SimulatedProcess, told: Attempt) -> None:
        def at_step(number: int, name: str) -> None:
            if number == told.step and told.kind != TWICE:
                self.happened.append(told)
                if told.kind == CRASH:
                    self._world.kill(process)
                else:
                    self._world.pause(process, told.pause)

        if told.kind == TWICE:
            self.happened.append(told)
        process.at_step = at_step


def _pickled(job: Job) -> bytes | None:
    """A job as bytes; None where it has classes that cannot be found by their names."""
    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def _answer(future: Future[Any]) -> Any:
    """The result of a task; an unexpected error becomes a RunError, as on Spark."""
    try:
        return future.result()
    except TidegateError:
        raise
    except Exception as error:
        raise RunError(
            "the tasks of a batch",
            "must do their work",
            f"{type(error).__name__} {error}",
            "Nothing was committed; run again.",
        ) from error
