"""The examples that need Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.examples.example import NEEDS_SPARK, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_from_a_dataframe(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    load("from_a_dataframe.py").main()
    rows = [line.split() for line in capfd.readouterr().out.splitlines() if "2023-11-14" in line]
    assert [r[1] for r in rows] == [
        f"2023-11-14T22:{m}:00+00:00" for m in (15, 20, 25) for _ in "abc"
    ]
    assert [r[2] for r in rows] == ["0", "1", "2"] * 3
    assert sum(int(r[4]) for r in rows) == 600
    seconds = range(1_700_000_000, 1_700_000_600)
    inside = [t for t in seconds if 1_700_000_100 <= t < 1_700_000_400]
    value = {t: (t - 1_700_000_000) ** 2 % 101 for t in inside}
    highest = [max(v for t, v in value.items() if (t - 1_700_000_000) % 3 == s) for s in range(3)]
    assert [int(r[3]) for r in rows[3:6]] == highest


def test_all_that_need_spark_are_here() -> None:
    assert NEEDS_SPARK == ("from_a_dataframe.py",)
