"""An executor dies while a switch is in flight, also one by window recreation and by a policy.

What Spark does then: the tasks that ran there run again elsewhere, where nothing is in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import drain, loop_of, memory, plan_of, rows_of
from tests.driver.test_unimico import Q1, Q2, Q3, ROWS
from tests.property.course import IN_MEMORY
from tidegate.elastic.handover import STATE, WINDOW
from tidegate.elastic.request import Move, Request, Scale
from tidegate.elastic.scripted import Scripted
from tidegate.execute import local
from tidegate.execute.job import Job, Outcome
from tidegate.execute.task import run_instance
from tidegate.operate.instance_cache import forget
from tidegate.sink.memory import MemorySink

SLIDING = "SELECT k, SUM(v) AS v FROM s [RANGE 12 SECONDS SLIDE 4 SECONDS] GROUP BY k"
QUERIES = {"Q1": Q1, "Q2": Q2, "Q3": Q3, "sliding": SLIDING}


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        yield Path(folder)


@pytest.mark.parametrize("handover", [WINDOW, STATE])
@pytest.mark.parametrize("query", QUERIES)
def test_an_executor_that_dies_while_buckets_change_hands_loses_nothing(
    query: str, handover: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies with its work done and not told, in the batch of each switch and the one after.

    The policy asks for more instances while the former owners of a move are still at work.
    """
    asked = {
        4: [Request(Move((0, 1, 2), 1))],
        5: [Request(Scale(3))],
        6: [Request(Move((0,), 2))],
        9: [Request(Scale(1))],
    }
    deaths: list[tuple[int, int, int]] = []

    def dies(job: Job, instance: int, parcels: Any) -> Outcome:
        if job.batch in (5, 6, 7, 8, 10, 11):
            run_instance(job, instance, parcels)
            forget()
            deaths.append((job.batch, instance, len(job.mapping.formers)))
        return run_instance(job, instance, parcels)

    sinks = MemorySink(), MemorySink()
    plan = plan_of(QUERIES[query])
    source = [memory(*ROWS, end=True)]
    still = loop_of(plan, source, place / "still", sinks[0], batch_rows=200)
    drain(still)
    still.close()
    monkeypatch.setattr(local, "run_instance", dies)
    loop = loop_of(
        plan,
        [memory(*ROWS, end=True)],
        place / "dies",
        sinks[1],
        batch_rows=6,
        handover=handover,
        policy=Scripted(asked),
    )
    drain(loop)
    loop.close()
    assert rows_of(sinks[1]) == rows_of(sinks[0])
    assert len(rows_of(sinks[0])) > 50
    assert {batch for batch, _, _ in deaths} == {5, 6, 7, 8, 10, 11}
    assert any(formers for _, _, formers in deaths) == (handover == WINDOW)
    assert {e["batch"] for e in loop.manifest.epochs} == {0, 5, 6, 7, 10}
