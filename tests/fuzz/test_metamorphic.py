"""Random queries and their rewrites; `python -m tests.fuzz.metamorphic SEED` runs some again."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.metamorphic import NAMES, check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 5
SEEDS = seeds(500 if LONG else 5)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
@pytest.mark.parametrize("name", NAMES)
def test_rewrites_give_the_same_rows(name: str | None, first: int) -> None:
    gave = [check_seed(seed, name) for seed in range(first, first + TOGETHER)]
    assert any(gave)
