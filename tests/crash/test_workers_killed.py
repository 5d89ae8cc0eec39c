"""kill -9 of workers that stay, at steps of their tasks, while others live on: the same results.

Who lives on has in memory what it kept of the batch before; who comes back has nothing, and reads
the checkpoint. The workers are real processes, without Spark; tests/spark kills those of Spark.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LONG
from tests.crash.driver import run
from tests.crash.site import Golden, Site
from tests.execute.resident.camp import Camp
from tests.seed import seeds
from tidegate.errors import LostParcelsError
from tidegate.execute.exchange import clear
from tidegate.execute.job import Job, Outcome
from tidegate.execute.resident.tasks import CrewTasks
from tidegate.execute.runner import Draft, JobRunner, Outcomes
from tidegate.execute.shared_task import map_task
from tidegate.execute.spark import task_exchange
from tidegate.execute.task_runner import Task
from tidegate.execute.work import TaskWork
from tidegate.testing import PHASES

NAMES = ("aggregate", "whole", "several")
"""Windows of time; windows over a join of a stream and its windows; windows of tuples, a join and
a class of its own."""

KILLS = 12 if LONG else 4
"""In each run."""


class OnCrew(JobRunner):
    """Runs batches as Spark's executor does, on workers that somebody else has started."""

    def __init__(self, camp: Camp) -> None:
        self._shared = task_exchange.StayingExchange(CrewTasks(camp.crew))
        self.ahead = self._shared.ahead

    def run(self, job: Job) -> list[Outcome]:
        return self._shared.run(job)

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return self._shared.run_batch(drafts)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        return self._shared.maps_ahead(drafts)

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        self._shared.map_ahead(jobs)

    def release(self, jobs: Sequence[Job]) -> None:
        self.ahead.clear(jobs[0])


class Apart(JobRunner):
    """The same for workers that have no files together, as on several hosts."""

    def __init__(self, tasks: CrewTasks) -> None:
        self._messages = task_exchange.MessageExchange(tasks, lambda outcomes: None)

    def run(self, job: Job) -> list[Outcome]:
        return self._messages.run(job)

    def release(self, jobs: Sequence[Job]) -> None:
        self._messages.release(jobs)
        clear(jobs[0])


@pytest.fixture(scope="module")
def camp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    made = Camp(tmp_path_factory.mktemp("camp"), hung_s=60)
    yield made
    made.close()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    """Workers that get each other's parcels over TCP only; nothing of them is left at the end."""
    made = Camp(tmp_path_factory.mktemp("hosts"), hung_s=60, apart=True)
    yield made
    made.gather()  # who comes after one that was killed removes what that one left
    made.close()
    assert [p for p in made.disk.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("seed", seeds(12 if LONG else len(NAMES)))
def test_workers_killed_at_random(
    seed: int,
    camp: Camp,
    make_site: Callable[..., Site],
    golden: Callable[..., Golden],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(f"workers {seed}")
    name = NAMES[seed % len(NAMES)]
    if seed // len(NAMES) % 2:  # map tasks, then instances, with files between them
        monkeypatch.setattr(task_exchange, "SMALL_ROWS", 0)
    batches = [chance.randrange(1, golden(name).batches) for _ in range(KILLS)]
    traps = [{"victim": "worker", "batch": b, "phase": chance.choice(PHASES)} for b in batches]
    site = make_site(name)
    camp.gather()
    run(site.request | {"traps": traps}, OnCrew(camp))
    died = [p.name for p in Path(f"{site.checkpoint}-traps").rglob("worker-*")]
    assert len(died) == KILLS
    site.finish()


@pytest.mark.parametrize("name", NAMES)
def test_workers_killed_while_they_map_the_next_batch(
    name: str,
    camp: Camp,
    make_site: Callable[..., Site],
    golden: Callable[..., Golden],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others do what they were at, beside the instances of the batch before."""
    monkeypatch.setattr(task_exchange, "SMALL_ROWS", 0)
    batches = range(1, golden(name).batches - 1)
    traps = [{"victim": "worker", "batch": batch, "phase": "read"} for batch in batches]
    site, runner = make_site(name), OnCrew(camp)
    camp.gather()
    run(site.request | {"traps": traps}, runner)
    died = [p.name for p in Path(f"{site.checkpoint}-traps").rglob("worker-*")]
    assert len(died) == len(batches)
    assert runner.ahead.used > 0
    site.finish()


@pytest.mark.parametrize("seed", seeds(12 if LONG else len(NAMES)))
def test_workers_without_common_files_killed_at_random(
    seed: int,
    hosts: Camp,
    make_site: Callable[..., Site],
    golden: Callable[..., Golden],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parcels that are lost with a worker are made again."""
    chance = random.Random(f"hosts {seed}")
    name = NAMES[seed % len(NAMES)]
    monkeypatch.setattr(task_exchange, "SMALL_ROWS", 0)
    batches = [chance.randrange(1, golden(name).batches) for _ in range(KILLS)]
    traps = [{"victim": "worker", "batch": b, "phase": chance.choice(PHASES)} for b in batches]
    site = make_site(name)
    hosts.gather()
    run(site.request | {"traps": traps}, Apart(CrewTasks(hosts.crew)))
    died = [p.name for p in Path(f"{site.checkpoint}-traps").rglob("worker-*")]
    assert len(died) == KILLS
    site.finish()


class Thinned(CrewTasks):
    """Kills a worker that holds parcels before the instances of a batch, in so many rounds."""

    def __init__(self, camp: Camp, rounds: Container[int]) -> None:
        super().__init__(camp.crew)
        self._kills_in = rounds
        self.rounds = self.killed = 0

    def each(self, job: Job, count: int, task: Task, work: TaskWork) -> list[Any]:
        answers = super().each(job, count, task, work)
        if task is map_task:
            if self.rounds in self._kills_in:
                held = next(s for s in answers if any(p[-1] for p in s.parcels))
                process = Path(held.path).parents[1].name.rpartition("-")[2]
                os.kill(int(process), signal.SIGKILL)
                self.killed += 1
            self.rounds += 1
        return answers


def test_the_parcels_of_a_worker_that_died_are_made_again(
    hosts: Camp,
    make_site: Callable[..., Site],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(task_exchange, "SMALL_ROWS", 0)
    tasks, site = Thinned(hosts, range(0, 9, 3)), make_site("aggregate")
    run(site.request, Apart(tasks))
    site.finish()
    again = [r for r in caplog.messages if "runs again: worker at 127.0.0.1:" in r]
    assert len(again) == tasks.killed == 3
    assert tasks.rounds > 9


def test_parcels_that_never_arrive_are_an_error_after_some_tries(
    hosts: Camp, make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Spark their batch is shuffled then."""
    monkeypatch.setattr(task_exchange, "SMALL_ROWS", 0)
    tasks, site = Thinned(hosts, range(9)), make_site("aggregate")
    with pytest.raises(LostParcelsError, match="must give the parcels of its map tasks"):
        run(site.request, Apart(tasks))
    assert tasks.killed == 3
