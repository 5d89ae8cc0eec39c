"""Random joins to tables against DuckDB."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.table_join import check_seed
from tests.seed import seeds

TOGETHER = 10
SEEDS = seeds(2_000 if os.environ.get("TIDEGATE_TEST_MODE") == "long" else 100)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_queries(first: int) -> None:
    gave = [check_seed(seed) for seed in range(first, first + TOGETHER)]
    assert any(gave)
