"""The questions of a first week: each example of examples/first_week beside the same in DuckDB."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.examples.example import FOLDER
from tidegate.cli.main import invoke
from tidegate.source.registry import open_uri

WEEK = FOLDER / "first_week"
TWINS = Path(__file__).parent / "first_week"
NAMES = sorted(path.stem for path in WEEK.glob("*.sql"))


def generated(uri: str) -> pa.Table:
    (source,) = open_uri(uri, "generated", None, False).discover()
    return source.reader(0, source.extend(10**9)).read(source.schema.names).table


def from_duckdb(name: str) -> list[dict[str, Any]]:
    """The rows of the twin, over what the example reads."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        text = (WEEK / f"{name}.sql").read_text(encoding="utf-8")
        for stream, uri in re.findall(r"CREATE STREAM (\w+) FROM '([^']+)'", text):
            connection.register(stream, generated(uri))
        for table, path in re.findall(r"CREATE TABLE (\w+) FROM '([^']+)'", text):
            connection.read_csv(str(FOLDER.parent / path)).create(table)
        twin = (TWINS / f"{name}.sql").read_text(encoding="utf-8")
        rows: list[dict[str, Any]] = connection.sql(twin).to_arrow_table().to_pylist()
    return rows


def from_tidegate(name: str, out: Path, *options: str) -> list[dict[str, Any]]:
    path, summary = str(WEEK / f"{name}.sql"), out / "summary.json"
    shared = ["--master", "none", "--out", str(out / "rows"), "--summary", str(summary)]
    assert invoke(["run", path, *shared, *options]) == 0
    assert json.loads(summary.read_text())["rows_rejected"] == 0
    files = sorted((out / "rows").glob("batch=*/*.parquet"))
    rows: list[dict[str, Any]] = pq.read_table(files, partitioning=None).to_pylist()
    return rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [(), ("--instances", "3", "--batch-rows", "1700")])
def test_an_example_answers_as_duckdb_does(
    name: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER.parent)
    found, expected = from_tidegate(name, tmp_path, *options), from_duckdb(name)
    assert len(found) == len(expected) > 5
    for row, other in zip(found, expected, strict=True):
        assert row == {n: _close(v) for n, v in other.items()}, (row, other)


def _close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_there_are_fifteen_and_each_is_short_and_listed() -> None:
    assert len(NAMES) == 15
    assert sorted(path.stem for path in TWINS.glob("*.sql")) == NAMES
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        text = (WEEK / f"{name}.sql").read_text(encoding="utf-8")
        assert len(text.splitlines()) < 15
        assert f"tidegate run examples/first_week/{name}.sql" in text
        assert f"[{name}.sql](first_week/{name}.sql)" in listed
