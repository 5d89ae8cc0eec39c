"""The policy by model on Spark, over streams that come by the clock: more instances, and fewer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tidegate as tg
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIGH, LOW = 2_000, 20
"""Tuples a second of each side. With windows as they are then, the first makes some hundred times
the work of the second, however fast the machine is; the quotas are far from both."""

JOIN = """
CREATE STREAM r FROM 'generator:r?pace={rates}&column=r&domain=200' TIME ts;
CREATE STREAM s FROM 'generator:s?pace={rates}&column=s&domain=200' TIME ts;
SELECT r.x, s.a FROM r [RANGE 3 SECONDS] JOIN s [RANGE 3 SECONDS]
ON r.x BETWEEN s.a - 1 AND s.a + 1 AND r.y BETWEEN s.b - 1 AND s.b + 1
"""


def test_instances_follow_the_rates_up_and_down(spark: SparkSession, tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    steps = [HIGH] * 9 + [LOW] * 7  # of half a second
    lines = [f"{n / 2},{rate},{rate}" for n, rate in enumerate(steps)]
    rates.write_text("\n".join(["t,r,s", *lines]))
    sink = MemorySink()
    query = (
        tg.Session(spark)
        .sql(JOIN.format(rates=rates))
        .start(
            sink=sink,
            method="scan",
            instances=1,
            policy="model?maximum=2&upper=0.02&lower=0.01&interval=0.5",
        )
    )
    query.wait()
    status = query.status()
    assert [e["instances"] for e in status["epochs"]] == [1, 2, 1]
    up, down = (e for e in status["epochs"] if e.get("by") == "policy model")
    assert "comparisons/s: work for " in up["why"]
    assert up["why"].endswith("upper bound 0.02: 1 -> 2 instances")
    assert down["why"].endswith("lower bound 0.01: 2 -> 1 instance")
    (judged,) = status["saso"].values()
    assert judged["switches"] == 2
    assert sink.table().num_rows > 0
