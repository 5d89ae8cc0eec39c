"""Random as-of joins against DuckDB; `python -m tests.fuzz.asof SEED` runs one of them again."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.asof import check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(2_000 if LONG else 60)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_as_of_joins(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        check_seed(seed)
