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


FAILURES = {
    "SELECT timestamp_micros(n) + INTERVAL 1 DAY AS t FROM rides": (
        "expression TIMESTAMP_MICROS(n) + 86400000000: the result must fit its type; "
        "got +294247-01-10 04:00:54.775807 and 1 day, 0:00:00. "
        "Timestamps reach to about 290,000 years before and after 1970."
    ),
    "SELECT date_format(timestamp_micros(n) + INTERVAL 1 DAY, 'yyyy') AS t FROM rides": (
        "expression DATE_FORMAT(TIMESTAMP_MICROS(`n`) + INTERVAL '1' DAY, 'yyyy'): Spark must find "
        "a value for every row; got java.lang.ArithmeticException: long overflow. "
        "Guard it with CASE WHEN, TRY_CAST or one of Spark's try_ functions."
    ),
    "SELECT soundex(route) AS s, CAST(soundex(route) AS INT) AS n FROM rides": (
        "one of the expressions SOUNDEX(`route`), CAST(SOUNDEX(`route`) AS INT): Spark must find a "
        "value for every row; got [CAST_INVALID_INPUT] The value 'A000' of the type \"STRING\" "
        'cannot be cast to "INT" because it is malformed.'
    ),
}


@pytest.mark.parametrize(("sql", "message"), FAILURES.items())
def test_a_row_that_has_no_value_is_one_line_that_names_the_expression(
    sql: str,
    message: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text("ts,route,n\n2024-01-01T00:00:01Z,a,9223372036854775807\n")
    Path("q.sql").write_text(sql)
    spark.sparkContext.setLogLevel("OFF")  # of the JVM, which tells of failed tasks
    code = invoke(["run", "q.sql", "--stream", "rides=rides.csv", "--master", "local[2]"])
    told = capfd.readouterr().err
    assert told.startswith(f"tidegate: {message}")
    assert told.count("\n") == 1
    assert code == 1


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
