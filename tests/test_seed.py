"""Which seed a run of the tests draws from: the same for everyone, unless another is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.docs.block import ROOT
from tests.seed import VARIABLE

SAY = "import os; from tests.seed import *; print(SEED, FIXED, os.environ.get(VARIABLE))"


def drawn(**environment: str) -> str:
    """The seed, whether it is fixed, and what worker processes are told."""
    kept = {k: v for k, v in os.environ.items() if k not in (VARIABLE, "CI")}
    command = [sys.executable, "-c", SAY]
    run = subprocess.run(
        command, env={**kept, **environment}, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


@pytest.mark.parametrize("environment", [{}, {"CI": "true"}])
def test_everyone_draws_the_same(environment: dict[str, str]) -> None:
    assert drawn(**environment) == "0 True None"


def test_another_seed_is_drawn_where_it_is_asked_for() -> None:
    assert drawn(**{VARIABLE: "17"}) == "17 False 17"
    seed, fixed, told = drawn(**{VARIABLE: "new"}).split()
    assert (fixed, told) == ("False", seed)
    assert int(seed) % 1000 == 0
    assert len({seed, *(drawn(**{VARIABLE: "new"}).split()[0] for _ in range(3))}) > 1
