"""Random expressions of all types by kernels and by Spark: type, value, and what fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.fuzz.scalar import draw_expression, draw_rows
from tests.seed import seeds
from tests.spark.both_engines import FAILS, by_kernels, by_spark, problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TOGETHER = 10
SEEDS = seeds(5_000 if LONG else 200)
EXPRESSIONS, ROWS = 6, 6


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_expressions(first: int, spark: SparkSession) -> None:
    """Seeds that are neighbours have rows in common, so that Spark is asked for all at once.

    What fails is asked for alone.
    """
    rows = draw_rows(np.random.default_rng([11, first]), ROWS)
    seeds: dict[str, int] = {}
    for seed in range(first, first + TOGETHER):
        chance = np.random.default_rng([12, seed])
        seeds |= {draw_expression(chance): seed for _ in range(EXPRESSIONS)}
    ours = by_kernels(rows, list(seeds))
    theirs = by_spark(spark, rows, [t for t in seeds if not isinstance(ours[t], str)])
    for text in (t for t in seeds if ours[t] == FAILS):
        theirs |= by_spark(spark, rows, [text])
    for text in theirs:
        wrong = problem(spark, rows, text, ours[text], theirs[text])
        assert wrong is None, f"seed {seeds[text]}: {text}\n{wrong}\n{rows.to_pylist()}"
