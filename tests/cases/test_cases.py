"""Every case, run in many ways without Spark: always its golden."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.cases.case import CASES, Case, oracle_golden
from tests.cases.run import Run, outputs_of, outputs_of_killed
from tidegate.session.place import Place

HERE = Place("none")

RUNS = {
    "at once": Run(1, 1000),
    "tuple by tuple": Run(1, 1),
    "two instances": Run(2, 5),
    "three instances": Run(3, 4),
    "switched": Run(1, 3, {1: 3, 2: 2, 4: 1}),
}

HALVES = ("two instances", "three instances")
"""Each case takes one of these; all take the others."""

LOCAL = [c for c in CASES if not c.needs_spark]
each_case = pytest.mark.parametrize("case", LOCAL, ids=lambda c: c.name)


def turn(number: int, case: Case, way: str) -> ParameterSet:
    """Both halves in the long mode."""
    marks = (pytest.mark.long,) if way == HALVES[number % 2] else ()
    return pytest.param(case, way, id=f"{way}-{case.name}", marks=marks)


@pytest.mark.parametrize(
    ("case", "way"), [turn(number, case, way) for number, case in enumerate(LOCAL) for way in RUNS]
)
def test_a_run_gives_the_golden(case: Case, way: str) -> None:
    case.check(outputs_of(case, HERE, RUNS[way]))


@each_case
def test_a_run_that_is_killed_again_and_again_gives_the_golden(case: Case, tmp_path: Path) -> None:
    case.check(outputs_of_killed(case, HERE, 4, (1, 3, 2), tmp_path))


@pytest.mark.parametrize("case", [c for c in CASES if c.oracle], ids=lambda c: c.name)
def test_the_golden_is_what_duckdb_says(case: Case) -> None:
    assert oracle_golden(case) == case.expected
