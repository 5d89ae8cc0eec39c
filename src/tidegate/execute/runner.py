"""The interface of a runner, and the order in which the jobs of a batch run.

A job runs after the jobs whose rows it reads.

Three levels run a batch on Spark. The loop calls a `JobRunner`. It gives each job to an exchange
(`execute/spark/task_exchange.py`, `shuffle.py`), which knows how rows travel from task to task. The
exchange gives its tasks to a `TaskRunner`, which knows where they run.
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
"""The reports of a batch: by subquery, then by instance."""


@dataclass(frozen=True)
class Draft:
    """A job that only lacks the rows of earlier jobs of the same batch.

    `span_us` is the least and the greatest event time that it reads from streams. `counts` are the
    operator's counts over earlier batches. No tuple that the gate has read is later than
    `newest_us`.
    """

    job: Job
    span_us: tuple[int, int]
    counts: Mapping[str, int] = field(default_factory=dict)
    newest_us: int = MIN_US

    def can_run(self, given: Mapping[Edge, Delivery]) -> bool:
        """Whether the rows of all jobs that it reads from are there."""
        origins = (prefix.origin for prefix in self.job.subquery.prefixes)
        return all(not isinstance(origin, Edge) or origin in given for origin in origins)

    def completed(self, given: Mapping[Edge, Delivery]) -> Job:
        """The job with the splits of its edges added, sorted by input and numbered anew."""
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
"""Runs one job, and returns the reports of its instances."""

MOST_AT_ONCE = 4
"""The most jobs of a batch that run side by side; their tasks share the same workers."""


def in_turn(drafts: Sequence[Draft], run: Run) -> tuple[list[Job], Outcomes]:
    """Run the jobs of a batch one after another."""
    return _in_waves(drafts, run, 1)


def side_by_side(drafts: Sequence[Draft], run: Run) -> tuple[list[Job], Outcomes]:
    """Run the jobs of a batch; jobs that read no rows of each other run at the same time.

    `run` is then called in several threads. It must not write files that the commit has to sync:
    `gathering` collects those of the loop's thread only.
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
    """Run jobs at the same time; when all have ended, raise the first error."""
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
    """The outcomes sorted by instance; a RunError unless every instance answered exactly once."""
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
    """The progress of a job: tasks done, of all its tasks."""

    done: int
    total: int


class JobRunner(Protocol):
    """Runs the tasks of jobs; what it returns does not depend on where they ran.

    One runner serves one query. The loop calls it from one thread, except where a method says
    otherwise.
    """

    def connected(self) -> JobRunner:
        """The runner to use from the first batch on: itself, unless it is a placeholder.

        A placeholder connects here and returns the real runner. Called before `start`, and again if
        the first batch did not fit into memory.
        """
        return self

    def start(self, drafts: Sequence[Draft]) -> bool:
        """Get ready for batches like this first one; return false if nothing had to be started."""
        return False

    def slots(self) -> int | None:
        """How many tasks run at once, if only the runner knows it, as on a cluster; else None."""
        return None

    def tasks(self) -> TaskCounts | None:
        """The progress of what runs now; None before it is ready. Called by any thread."""
        return TaskCounts(0, 0)

    def executors(self) -> Mapping[str, int] | None:
        """How many executors are `wanted` and `there`, on a cluster that scales with instances.

        None elsewhere. Called by any thread.
        """
        return None

    def run(self, job: Job) -> list[Outcome]:
        """Run one job; return the outcome of each instance, in their order."""
        ...

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        """Complete and run all jobs of a batch; return the jobs and their outcomes."""
        return in_turn(drafts, self.run)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        """Whether it pays to run the next batch's map tasks beside these jobs."""
        return False

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        """Start map tasks of the next batch while this one runs; called in another thread.

        A later `run` takes their parcels if its job needs the same map tasks. If not, or if one of
        them failed, it runs the map tasks again. Nothing counts before that.
        """
        return None

    def until_at_work(self) -> None:
        """Block briefly, until the tasks of the batch have been sent from this process.

        A background thread calls it before work of its own, so that it does not delay the batch.
        """
        return None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run a picklable function where tasks run, beside the batches; here, in this thread.

        The future gets what the function returns or raises. It gets a BrokenExecutor if the process
        that ran it died or `close` came first. The thread of the loop must not call it: it may
        block until the function has run.
        """
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def release(self, jobs: Sequence[Job]) -> None:
        """Delete what the jobs of a batch left for each other; called after pieces are loaded."""
        return None

    def abort(self) -> bool:
        """Break off what runs; return false if the runner cannot. Called by any thread.

        Whoever waits for the tasks soon gets an error.
        """
        return False

    def close(self) -> None:
        """Release everything; functions that were submitted and have not begun fail."""
        return None
