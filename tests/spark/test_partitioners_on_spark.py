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


def run(session: tg.Session, folder: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    windows = stream(session).window("3 seconds", slide="1 second").group_by("k")
    counted = windows.partition(name).agg(n=tg.count(), middle=tg.median("v"))
    sink = MemorySink()
    query = counted.top(5, by="n").start(sink=sink, checkpoint=folder, instances=2, **options)
    query.wait()
    return sink.table().to_pylist()


@pytest.mark.parametrize("name", WAYS)
def test_the_rows_are_those_of_hash(spark: SparkSession, tmp_path: Path, name: str) -> None:
    expected = run(tg.Session(master="none"), tmp_path / "hash", "hash")
    assert len(expected) > 20
    options = {"batch_rows": ROWS // 6, **WAYS[name]}
    assert run(tg.Session(spark), tmp_path / "other", name, **options) == expected
