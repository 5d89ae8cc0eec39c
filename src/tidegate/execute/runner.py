"""The interface of what runs the jobs of a batch, each after those whose rows it takes.

Three levels run a batch on Spark: a `JobRunner`, which the loop knows, hands each job to an
exchange (`execute/spark/task_exchange.py`, `shuffle.py`), which knows how rows come from task to
task, and that one gives its tasks to a `TaskRunner`, which knows where they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from tidegate import schedule
from tidegate.batch import MIN_US
from tidegate.errors import RunError
from tidegate.execute.delivery import Delivery
from tidegate.execute.job import Job, Outcome
from tidegate.execute.splits import edge_splits
from tidegate.operate.operator import BatchFacts
from tidegate.plan.physical import Edge
from tidegate.schedule import beside

T = TypeVar("T")

Outcomes = list[list[Outcome]]
"""What all instances of all subqueries report of a batch."""


@dataclass(frozen=True)
class Draft:
    """A job that is complete but for the rows that earlier ones of the batch will give it.

    `span_us` are the least and the greatest event time of what it reads of streams, `counts` the
    sums of what its operator counted in earlier batches. No tuple that was read is after
    `newest_us`.
    """

    job: Job
    span_us: tuple[int, int]
    counts: Mapping[str, int] = field(default_factory=dict)
    newest_us: int = MIN_US

    def can_run(self, given: Mapping[Edge, Delivery]) -> bool:
        """Whether all rows are there that it takes of other jobs."""
        origins = (prefix.origin for prefix in self.job.subquery.prefixes)
        return all(not isinstance(origin, Edge) or origin in given for origin in origins)

    def completed(self, given: Mapping[Edge, Delivery]) -> Job:
        """The job with splits of its edges among those of its streams, by input."""
        job, prefixes = self.job, self.job.subquery.prefixes
        spans, splits = [self.span_us], list(job.splits)
        for number, prefix in enumerate(prefixes):
            if isinstance(prefix.origin, Edge):
                delivery = given[prefix.origin]
                spans.append((delivery.low_us, delivery.high_us))
                splits += edge_splits(number, delivery)
        splits.sort(key=lambda s: s.input)
        facts = BatchFacts(
            previous_us=job.previous_us,
            frontier_us=job.frontier_us,
            low_us=min(low for low, _ in spans),
            high_us=max(high for _, high in spans),
            instances=job.mapping.instances,
            counts=self.counts,
            newest_us=self.newest_us,
        )
        job = replace(job, splits=tuple(replace(s, index=i) for i, s in enumerate(splits)))
        return job.with_operator(job.operator.for_batch(facts))


Run = Callable[[Job], list[Outcome]]
"""Runs one job, and gives what its instances report."""

MOST_AT_ONCE = 4
"""So many jobs of a batch run side by side: their tasks share the same workers."""


def in_turn(drafts: Sequence[Draft], run: Run) -> tuple[list[Job], Outcomes]:
    """Run the jobs of a batch one after the other."""
    return _in_waves(drafts, run, 1)


def side_by_side(drafts: Sequence[Draft], run: Run) -> tuple[list[Job], Outcomes]:
    """Run the jobs of a batch, at the same time those that take no rows of each other.

    `run` is called in several threads then. It writes nothing itself that a commit waits for.
    """
    return _in_waves(drafts, run, MOST_AT_ONCE)


def _in_waves(drafts: Sequence[Draft], run: Run, most: int) -> tuple[list[Job], Outcomes]:
    prefixes = (p for d in drafts for p in d.job.subquery.prefixes)
    taken = {p.origin for p in prefixes if isinstance(p.origin, Edge)}
    given: dict[Edge, Delivery] = {}
    done: dict[int, tuple[Job, list[Outcome]]] = {}
    while len(done) < len(drafts):
        ready = [n for n, d in enumerate(drafts) if n not in done and d.can_run(given)][:most]
        jobs = [drafts[number].completed(given) for number in ready]
        for number, job, answers in zip(ready, jobs, _together(jobs, run), strict=True):
            found = checked(job, answers)
            done[number] = job, found
            for place, port in enumerate(job.subquery.ports):
                edge = Edge(number, place)
                if edge in taken:
                    given[edge] = Delivery.of(job.name, job.operator.order, place, port, found)
    return [done[n][0] for n in range(len(drafts))], [done[n][1] for n in range(len(drafts))]


def _together(jobs: Sequence[Job], run: Run) -> list[list[Outcome]]:
    """What jobs report that run at the same time; the first error is raised when all are done."""
    first, *others = jobs
    begun = [beside(f"tidegate-job {job.subquery.name}", partial(run, job)) for job in others]
    try:
        found = [run(first)]
    finally:
        schedule.wait(future for future in begun if future is not None)
    for job, future in zip(others, begun, strict=True):
        found.append(run(job) if future is None else future.result())
    return found


def checked(job: Job, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes by instance; every instance must have answered exactly once."""
    answered = sorted(o.instance for o in outcomes)
    if answered != list(range(job.mapping.running)):
        raise RunError(
            f"batch {job.batch}, subquery {job.subquery.name}",
            f"all {job.mapping.running} instances must answer once",
            f"answers of {answered}",
            "Nothing was committed; run again.",
        )
    return sorted(outcomes, key=lambda o: o.instance)


class TaskCounts(NamedTuple):
    """How far a job is: tasks done, of all there are."""

    done: int
    total: int


class JobRunner(Protocol):
    """Runs the tasks of jobs; what it returns does not depend on where they ran."""

    def connected(self) -> JobRunner:
        """The runner to use from the first batch on: itself, but for one that stands for another.

        Called before `start`; again where the first batch did not fit into memory.
        """
        return self

    def start(self, drafts: Sequence[Draft]) -> bool:
        """Get ready for batches like this one, the first; false where nothing had to be started."""
        return False

    def slots(self) -> int | None:
        """How many tasks run at once, where only it knows, as on a cluster; None elsewhere."""
        return None

    def tasks(self) -> TaskCounts | None:
        """Of what runs now: tasks done, and all there are; None where it is not ready yet.

        For those who watch, from any thread.
        """
        return TaskCounts(0, 0)

    def executors(self) -> Mapping[str, int] | None:
        """Of a cluster, where executors follow the instances: how many are `wanted` and `there`.

        None where they do not. For those who watch, from any thread.
        """
        return None

    def run(self, job: Job) -> list[Outcome]: ...

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        """All jobs of a batch, completed, and what their instances report."""
        return in_turn(drafts, self.run)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        """Whether it is worth it, beside these jobs, to run the map tasks of the next batch."""
        return False

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        """Begin the map tasks of jobs of the next batch while this one runs, in another thread.

        `run` uses what they leave where its job asks the same of map tasks, and else runs them
        again; so does it where they have failed. Nothing of them counts before.
        """
        return None

    def until_at_work(self) -> None:
        """Block for a moment, until tasks of a batch have got what they need from this process.

        For a thread of it that has work of its own, and must not be in the way.
        """
        return None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run a picklable function beside the batches, where tasks run; here, in this thread.

        The future has what the function returns or raises, and BrokenExecutor where the process
        that ran it died or `close` came first. Not for the thread of the loop, which must not wait.
        """
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def release(self, jobs: Sequence[Job]) -> None:
        """Let go of what the jobs of a batch left for each other; pieces are loaded by then."""
        return None

    def abort(self) -> bool:
        """Break off what runs, from any thread; false where it goes on, as it does in this process.

        Who waits for what was broken off gets an error soon.
        """
        return False

    def close(self) -> None:
        """Let go of everything; what was submitted and has not begun is broken."""
        return None
