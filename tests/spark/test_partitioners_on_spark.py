"""Partitioners that look at the load, on Spark: the rows of `hash` in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.spark.test_graphs_on_spark import ROWS, stream
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS: dict[str, dict[str, Any]] = {
    "cam": {"exchange": "shared", "switches": {3: 3}},
    "pk?d=3": {"exchange": "shuffle", "execution": "jobs", "batch_rows": 400},
}


def run(
    session: tg.Session, folder: Path, name: str, **options: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows, and the figures of the windows by subquery."""
    windows = stream(session).window("3 seconds", slide="1 second").group_by("k")
    counted = windows.partition(name).agg(n=tg.count(), middle=tg.median("v"))
    sink = MemorySink()
    query = counted.top(5, by="n").start(sink=sink, checkpoint=folder, instances=2, **options)
    summary = query.wait()
    return sink.table().to_pylist(), summary.as_dict()["windows"]


@pytest.mark.parametrize("name", WAYS)
def test_the_rows_are_those_of_hash(spark: SparkSession, tmp_path: Path, name: str) -> None:
    expected, wanted = run(tg.Session(master="none"), tmp_path / "hash", "hash")
    assert len(expected) > 20
    options = {"batch_rows": ROWS // 6, **WAYS[name]}
    rows, told = run(tg.Session(spark), tmp_path / "other", name, **options)
    assert rows == expected
    # What was counted of windows came from map tasks and instances in other processes.
    hashed, sent, merged = wanted["aggregate"], told["aggregate"], told["merge"]
    assert hashed["windows"] == sent["windows"] == merged["windows"] > 3
    assert sent["figures"]["tuples"] == hashed["figures"]["tuples"]
    assert merged["figures"]["groups"] == hashed["figures"]["groups"]
    assert merged["figures"]["parts"] == sent["figures"]["parts"]
    assert sent["figures"]["partition_ms"]["max"] > 0
