"""What older versions of Spark lack, done another way with the same result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidegate as tg
from tidegate.execute.spark.feature import check_version, routed, routed_by_hash, version_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.parametrize("partitions", [1, 2, 7, 40])
def test_rows_go_to_the_partition_of_their_number(spark: SparkSession, partitions: int) -> None:
    from pyspark.sql import functions as F

    def places(frame: DataFrame) -> list[tuple[int, int]]:
        found = frame.select("number", F.spark_partition_id().alias("place")).collect()
        return sorted((row.number, row.place) for row in found)

    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "false")
    numbers = own.range(3 * partitions).select(
        (F.col("id") % partitions).cast("int").alias("number")
    )
    expected = sorted((n, n) for n in range(partitions) for _ in range(3))
    assert places(routed_by_hash(numbers, partitions, "number")) == expected
    assert places(routed(numbers, partitions, "number")) == expected


def test_versions_that_are_too_old() -> None:
    for version in ("4.0.0", "4.1.4", "4.3.0", "4.4.0-SNAPSHOT", "5.0.0"):
        check_version(version)
    with pytest.raises(tg.OptionError, match=r"Spark: must be 4\.0 to 4\.3; got 3\.5\.9"):
        check_version("3.5.9")
    assert version_of("4.10.1") > version_of("4.9.0")
