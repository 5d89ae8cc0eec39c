"""kill -9 of workers that stay, at steps of their tasks, while others live on: the same results.

Who lives on has in memory what it kept of the batch before; who comes back has nothing, and reads
the checkpoint. The workers are real processes, without Spark; tests/spark kills those of Spark.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.crash.driver import run
from tests.crash.site import Golden, Site
from tests.execute.resident.camp import Camp
from tests.seed import seeds
from tidegate.execute.job import Job, Outcome
from tidegate.execute.resident.tasks import CrewTasks
from tidegate.execute.runner import Draft, JobRunner, Outcomes
from tidegate.execute.spark import task_exchange
from tidegate.testing import PHASES

NAMES = ("aggregate", "whole", "several")
"""Windows of time; windows over a join of a stream and its windows; windows of tuples, a join and
a class of its own."""

KILLS = 12 if LONG else 4
"""In each run."""


class OnCrew(JobRunner):
    """Runs batches as Spark's executor does, on workers that somebody else has started."""

    def __init__(self, camp: Camp) -> None:
        self._shared = task_exchange.SharedExchange(CrewTasks(camp.crew))
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


@pytest.fixture(scope="module")
def camp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    made = Camp(tmp_path_factory.mktemp("camp"), hung_s=60)
    yield made
    made.close()


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
