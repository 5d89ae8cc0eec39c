"""Mistakes that only Spark can tell: one clear line as well, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.cli.main import invoke

MISTAKES = {
    "SELECT uper(route) AS r FROM rides": "query: no function of Spark has this name; got UPER. "
    "Did you mean upper or user?",
    "SELECT frobnicate(route) AS r FROM rides": "query: no function of Spark has this name; got "
    "FROBNICATE. Spark's documentation lists its functions.",
}


@pytest.mark.parametrize(("sql", "message"), MISTAKES.items())
def test_a_function_that_nobody_has(
    sql: str,
    message: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text("ts,route\n2024-01-01T00:00:01Z,a\n")
    Path("q.sql").write_text(sql)
    places = ("--out", "results", "--checkpoint", "state")
    code = invoke(["run", "q.sql", "--stream", "rides=rides.csv", "--master", "local[2]", *places])
    assert capfd.readouterr() == ("", f"tidegate: {message}\n")
    assert code == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["q.sql", "rides.csv"]
