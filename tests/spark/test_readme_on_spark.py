"""The README's Python runs as it stands, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.docs.block import blocks
from tests.docs.test_readme import write_rides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_python_of_the_readme(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rides("rides.parquet")
    (program,) = blocks("README.md", "python")
    exec(compile(program, "README.md", "exec"), {})
    found = pq.read_table(sorted(Path("out").glob("batch=*/*.parquet")), partitioning=None)
    assert found.column_names == ["window_start", "window_end", "route", "fare", "n"]
    assert found.num_rows > 20
