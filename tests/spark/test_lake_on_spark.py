"""Tasks of Spark write the files of lakehouse tables: the rows that one process writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sink.lake.place import KINDS
from tests.spark.test_parts import cut_finely, output, outputs
from tidegate.driver.options import RunOptions
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_write_the_parts_of_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = outputs("stateless")
    whole, _ = output(asked, Place("none"), tmp_path / "whole", 1)
    cut_finely(monkeypatch)
    place = Place(session=spark)
    for kind, make in KINDS.items():
        lake = make(tmp_path / kind)
        lake.folder.mkdir()
        options = RunOptions(instances=2, batch_rows=5_000)
        sinks = {None: lake.sink()}
        prepare(plan_for(asked, place), place, sinks, options, str(lake.folder / "c")).run()
        assert lake.rows() == whole.to_pylist()
        assert len(lake.files()) > 4
