"""Each safeguard that is taken out is found missing by a simulated course, within a few seeds."""

from __future__ import annotations

import pytest

from tests.seed import seeds
from tests.simulation.course import run
from tests.simulation.mutant import MUTANTS, Mutant
from tests.simulation.scenario import scenario

MOST_COURSES = 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    tried = [mutant.seed, *seeds(MOST_COURSES)]
    courses = (scenario(seed, faults=3, kinds=mutant.kinds) for seed in tried)
    found = next((report for report in map(run, courses) if report.wrong is not None), None)
    assert found is not None, f"{MOST_COURSES} courses went well without it"
