"""Random queries with LEAD against DuckDB; `python -m tests.fuzz.lead SEED` runs one again."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.lead import check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(2_000 if LONG else 30)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_leads(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        check_seed(seed)
