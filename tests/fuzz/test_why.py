"""Random rows come again from the tuples that are told of them, for queries of every construct."""

from __future__ import annotations

import os

from tests.fuzz.construct import CONSTRUCTS
from tests.fuzz.why import check_seed
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
SEEDS = seeds(60 if LONG else 1)


def test_rows_come_again_from_their_tuples() -> None:
    found = [check_seed(seed, name) for seed in SEEDS for name in (None, *CONSTRUCTS)]
    assert sum(found) >= len(SEEDS) * 5
