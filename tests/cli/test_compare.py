"""`tidegate compare`: equal or not, which rows and columns differ, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.main import invoke

ROWS = """ts,k,v
2024-01-01 00:00:01,a,1
2024-01-01 00:00:02,b,2
2024-01-01 00:00:03,a,5
2024-01-01 00:00:11,c,4
2024-01-01 00:00:12,a,7
"""
OLD = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text(ROWS)


def compared(
    capsys: pytest.CaptureFixture[str], new: str, *options: str, old: str = OLD, code: int = 1
) -> dict[str, Any]:
    create = "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) FROM 's.csv' TIME ts; "
    Path("old.sql").write_text(create + old)
    Path("new.sql").write_text(create + new)
    assert invoke(["compare", "old.sql", "new.sql", "--json", *options]) == code
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert facts["equal"] is (code == 0)
    return facts


def differences(facts: dict[str, Any]) -> list[tuple[Any, ...]]:
    (output,) = facts["outputs"]
    return [(d["kind"], d["old_row"], d["new_row"], d["changes"]) for d in output["differences"]]


@pytest.mark.parametrize("batch_rows", ["1", "100"])
def test_a_query_that_is_only_written_otherwise_is_equal(
    batch_rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] WHERE v > 0 GROUP BY k"
    facts = compared(capsys, new, "--batch-rows", batch_rows, code=0)
    assert facts["outputs"][0]["rows"] == {"old": 4, "new": 4}
    assert invoke(["compare", "old.sql", "new.sql"]) == 0
    assert capsys.readouterr().out == "equal, 4 rows\n"


@pytest.mark.parametrize("batch_rows", ["1", "100"])
def test_rows_are_paired_by_window_and_group(
    batch_rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] WHERE v > 2 GROUP BY k"
    facts = compared(capsys, new, "--batch-rows", batch_rows)
    assert differences(facts) == [
        ("changed", 0, 0, {"total": {"old": 6, "new": 5}}),
        ("only in old", 1, None, {}),
    ]
    assert facts["outputs"][0]["changed_columns"] == {"total": 1}
    assert invoke(["compare", "old.sql", "new.sql", "--most", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "different, 4 rows in old and 3 in new"
    assert lines[1:3] == ["  rows: 1 changed, 1 only in old", "  changed: total in 1 row"]
    assert lines[3].startswith("  changed (old row 0, new row 0): total 6 to 5; window_start=")
    assert lines[4:] == ["  and 1 more; --most lists more of them"]


def test_tuples_without_a_key_are_paired_within_their_instant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = "SELECT k, v FROM s", "SELECT k, IF(k = 'b', 9, v) AS v FROM s WHERE k <> 'c'"
    assert differences(compared(capsys, new, old=old)) == [
        ("changed", 1, 1, {"v": {"old": 2, "new": 9}}),
        ("only in old", 3, None, {}),
    ]


def test_another_order_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    facts = compared(capsys, f"{OLD} ORDER BY total")
    assert differences(facts) == [("moved", 1, 0, {}), ("moved", 3, 2, {})]


def test_columns_are_told_and_the_others_compared(capsys: pytest.CaptureFixture[str]) -> None:
    new = (
        "SELECT k, CAST(SUM(v) AS DOUBLE) AS total, COUNT(*) AS n "
        "FROM s [RANGE 10 SECONDS] GROUP BY k"
    )
    old = OLD.replace(" FROM", ", MAX(v) AS top FROM")
    (output,) = compared(capsys, new, old=old)["outputs"]
    assert output["columns"] == {
        "removed": {"top": "int"},
        "added": {"n": "bigint"},
        "retyped": {"total": {"old": "bigint", "new": "double"}},
    }
    assert output["differences"] == []
    assert invoke(["compare", "old.sql", "new.sql"]) == 1
    assert capsys.readouterr().out.endswith("  the other columns are equal in all rows\n")


def test_rows_of_outer_joins_and_early_results_are_compared_in_their_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    join = (
        "SELECT l.k, l.v, r.v AS w FROM s AS l [RANGE 1 SECOND] LEFT JOIN s AS r [RANGE 1 SECOND] "
        "ON l.k = r.k AND l.v < r.v"
    )
    early = f"{OLD} EMIT EVERY 2 SECONDS"
    for query in (join, early):
        facts = compared(capsys, query, old=query, code=0)
        assert facts["outputs"][0]["rows"]["new"] > 4


def test_several_outputs_are_compared_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    old = "INSERT INTO a SELECT k FROM s; INSERT INTO b SELECT v FROM s"
    new = "INSERT INTO b SELECT v FROM s; INSERT INTO c SELECT v FROM s"
    facts = compared(capsys, new, old=old)
    assert (facts["outputs_removed"], facts["outputs_added"]) == (["a"], ["c"])
    assert [(o["name"], o["equal"]) for o in facts["outputs"]] == [("b", True)]


def test_mistakes_start_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text("CREATE STREAM s FROM 's.csv' TIME ts; SELECT k FROM s")
    assert invoke(["compare", "q.sql", "gone.sql"]) == 2
    assert (
        "gone.sql: the query must be a file with SQL; got no such file" in capsys.readouterr().err
    )
