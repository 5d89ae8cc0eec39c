"""What the README shows runs as it stands (its Python, on Spark, in tests/spark)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.docs.block import ROOT, blocks
from tidegate.cli.main import invoke
from tidegate.source.registry import open_uri


def write_rides(path: str, rows: int = 5_000) -> None:
    """A file like the one the README speaks of."""
    (source,) = open_uri(
        f"generator:taxi?rows={rows}&rate=2", "rides", "dropoff_time", False
    ).discover()
    pq.write_table(source.reader(0, rows).read(source.schema.names).table, path)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rides("rides.parquet")


def test_the_sql_runs_and_gives_the_same_rows_for_other_instances():
    (sql,) = blocks("README.md", "sql")
    Path("routes.sql").write_text(sql)
    base = ["run", "routes.sql", "--master", "none", "--batch-rows", "700"]
    assert invoke([*base, "--out", "out", "--checkpoint", "ckpt", "--instances", "2"]) == 0
    assert invoke([*base, "--out", "other", "--instances", "7", "--switch", "3=4"]) == 0
    tables = [pq.read_table(sorted(Path(o).glob("batch=*/*.parquet"))) for o in ("out", "other")]
    assert tables[0].num_rows > 20
    assert tables[0].equals(tables[1])


def test_the_first_screen_names_both_commands():
    first_screen = (ROOT / "README.md").read_text().splitlines()[:25]
    text = "\n".join(first_screen)
    assert "make demo" in text
    assert "make test" in text
