"""Random queries with functions OVER against DuckDB; `python -m tests.fuzz.over SEED` runs one."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.over import check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(2_000 if LONG else 30)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_frames(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        check_seed(seed)
