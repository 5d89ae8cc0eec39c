"""Random queries and their rewrites; `python -m tests.fuzz.metamorphic SEED` runs some again."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.metamorphic import NAMES, check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER, MOST = 5, 25
"""Seeds of a test; and so many at most, where none of the first has given a row."""

SEEDS = seeds(500 if LONG else 5)


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
@pytest.mark.parametrize("name", NAMES)
def test_rewrites_give_the_same_rows(name: str | None, first: int) -> None:
    gave = [check_seed(seed, name) for seed in range(first, first + TOGETHER)]
    more = (check_seed(seed, name) for seed in range(first + TOGETHER, first + MOST))
    assert any(gave) or any(more), "no query has given a row"
