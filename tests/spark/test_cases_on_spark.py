"""Every case on Spark, at one, two and three instances and across a switch: the same golden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cases.case import CASES, Case
from tests.cases.run import Run, outputs_of
from tidegate.runtime.launch import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = {
    "one instance": Run(1, 1000),
    "two instances": Run(2, 1000),
    "three instances": Run(3, 8),
    "switched": Run(2, 6, {1: 3, 2: 1}),
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("way", RUNS)
def test_a_run_on_spark_gives_the_golden(case: Case, way: str, spark: SparkSession) -> None:
    case.check(outputs_of(case, Place(session=spark), RUNS[way]))
