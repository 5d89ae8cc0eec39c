"""Simulated courses with random faults end as the interpreter says, or are refused and then do."""

from __future__ import annotations

import pytest

from tests.conftest import LONG
from tests.seed import SEED
from tests.simulation.course import run
from tests.simulation.scenario import scenario
from tests.simulation.shrink import told

COURSES = 8
"""So many in a block, each with five faults of which some do not happen: the run ends before."""

BLOCKS = 400 if LONG else 13
"""In long mode more than ten thousand faults happen, else more than three hundred."""

LEAST_FAULTS = 8
"""In a block, so that none passes without any; on average there are 31."""

LEAST_REQUESTS = 2
"""In a block for other owners of buckets; on average there are 15."""

LEAST_AHEAD = 2
"""In a block jobs whose map tasks ran beside the batch before; on average there are 26, and 5 more
whose map tasks ran for nothing, because a switch came between."""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_fault_changes_what_comes_out(block: int) -> None:
    first = SEED + block * COURSES
    reports = [run(scenario(seed, faults=5)) for seed in range(first, first + COURSES)]
    assert [told(report) for report in reports if report.wrong is not None] == []
    assert sum(len(report.happened) for report in reports) >= LEAST_FAULTS
    assert sum(report.asked.total() for report in reports) >= LEAST_REQUESTS
    assert sum(report.ahead["used"] for report in reports) >= LEAST_AHEAD


def test_a_seed_gives_one_course() -> None:
    for seed in range(3):
        one, two = (run(scenario(seed, faults=4)) for _ in range(2))
        assert one == two
        assert one.steps > 100


def test_courses_differ_in_all_that_is_drawn() -> None:
    drawn = [scenario(seed) for seed in range(200)]
    assert {stream.format for s in drawn for stream in s.streams} == {"csv", "json", "parquet"}
    assert {s.follow for s in drawn} == {True, False}
    assert {s.format for s in drawn} == {"csv", "json", "parquet", "call"}
    assert {len(s.graph.outputs) for s in drawn} >= {1, 2, 3}
    assert {start.handover for s in drawn for start in s.starts} == {"auto", "state", "window"}
    assert {stream.folder for s in drawn for stream in s.streams} == {True, False}
    kinds = {type(fault).__name__ for s in drawn for fault in s.faults}
    assert kinds == {
        *(
            "Kill",
            "PowerLoss",
            "Strike",
            "Torn",
            "Fails",
            "Full",
            "Task",
            "Zombie",
            "Damage",
            "Replaced",
        ),
        *("Rotated", "Refuses", "Astray"),
    }
    steps = {type(step).__name__ for s in drawn for step in s.graph.steps}
    assert steps >= {"Windows", "TupleWindows", "Pairs", "Own", "UnionAll", "Split", "First"}
