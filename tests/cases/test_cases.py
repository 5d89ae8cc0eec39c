"""Every case, run in many ways without Spark: always its golden."""

from __future__ import annotations

from pathlib import Path

import pytest

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

LOCAL = [c for c in CASES if not c.needs_spark]
each_case = pytest.mark.parametrize("case", LOCAL, ids=lambda c: c.name)


@each_case
@pytest.mark.parametrize("way", RUNS)
def test_a_run_gives_the_golden(case: Case, way: str) -> None:
    case.check(outputs_of(case, HERE, RUNS[way]))


@each_case
def test_a_run_that_is_killed_again_and_again_gives_the_golden(case: Case, tmp_path: Path) -> None:
    case.check(outputs_of_killed(case, HERE, 4, (1, 3, 2), tmp_path))


@pytest.mark.parametrize("case", [c for c in CASES if c.oracle], ids=lambda c: c.name)
def test_the_golden_is_what_duckdb_says(case: Case) -> None:
    assert oracle_golden(case) == case.expected
