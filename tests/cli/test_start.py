"""How quickly commands start: none imports what it has no use for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate import no_pandas

pytestmark = pytest.mark.whole

HEAVY = (
    "pandas rich numba scipy pyspark duckdb polars matplotlib IPython confluent_kafka deltalake "
    "pyiceberg psycopg obstore datasketches"
).split()
"""What takes long to import, and only some queries, sources, sinks or pictures need."""

ENGINE = (
    "sqlglot tidegate.sql tidegate.query tidegate.plan tidegate.operate tidegate.execute.job "
    "tidegate.driver.loop tidegate.session"
).split()
"""What runs queries, and what they are written with."""

PROGRAM = """
import json, sys
from tidegate.cli.main import OWN_PROCESS, invoke
codes = [invoke(words, OWN_PROCESS) for words in json.loads(sys.argv[1])]
print(json.dumps([codes, sorted(sys.modules)]), file=sys.stderr)
"""

QUERY = "SELECT k, COUNT(*) AS n FROM calls [RANGE 1 MINUTE] GROUP BY k"


def loaded(*commands: list[str]) -> tuple[list[int], set[str]]:
    """The exit codes of commands that a process of their own runs, and what it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
    )
    codes, modules = json.loads(done.stderr.splitlines()[-1])
    return codes, set(modules)


def test_no_command_imports_what_it_has_no_use_for(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("ts,k\n2024-01-01 00:00:00,a\n2024-01-01 00:00:01,b\n")
    checkpoint, page = str(tmp_path / "checkpoint"), str(tmp_path / "report.html")
    query = ["-e", QUERY, "--stream", f"calls={tmp_path / 'calls.csv'}", "--master", "none"]
    run = ["run", *query, "--checkpoint", checkpoint, "--out", str(tmp_path / "out")]

    codes, modules = loaded(["explain", *query], run)
    assert codes == [0, 0]
    assert {"sqlglot", "tidegate.driver.loop"} <= modules  # it has seen what there is to see
    assert not modules & {*HEAVY, "tidegate.dashboard.server", "http.server"}

    codes, modules = loaded(
        ["ctl", checkpoint, "status"],
        ["report", checkpoint, "-o", page],
        ["state", checkpoint],
        ["dashboard", "--help"],
    )
    assert codes == [2, 0, 0, 0]  # nobody is there to ask: the query has finished
    assert not modules & {*HEAVY, *ENGINE}


def test_pandas_that_is_left_out_can_be_imported_later() -> None:
    program = """
import sys
from tidegate.no_pandas import leave_pandas_out
finders = list(sys.meta_path)
leave_pandas_out()
import pyarrow as pa
assert pa.table({"a": [1, None]}).column("a").null_count == 1
assert "pandas" not in sys.modules and sys.meta_path == finders
import pandas
assert pa.table({"a": [1]}).to_pandas().equals(pandas.DataFrame({"a": [1]}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_pandas_that_is_there_stays_known() -> None:
    """Commands that are called in a process of somebody else change nothing of it."""
    pandas = pytest.importorskip("pandas")
    no_pandas.leave_pandas_out()
    assert pa.array([1, pandas.NA], from_pandas=True).null_count == 1
