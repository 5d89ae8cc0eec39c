"""Random queries with each construct against DuckDB; `python -m tests.fuzz session SEED` is one."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.construct import CONSTRUCTS, check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(1_000 if LONG else 10)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs(name: str, first: int) -> None:
    gave = [check_seed(seed, name) for seed in range(first, first + TOGETHER)]
    assert any(gave)
