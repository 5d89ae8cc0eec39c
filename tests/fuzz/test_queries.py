"""Random queries against DuckDB; `python -m tests.fuzz SEED` runs one of them again."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.compare import check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(5_000 if LONG else 120)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_queries(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        check_seed(seed)
