"""Declared columns and options through the command line, over runs that go on, without Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tidegate.cli.main import invoke

SQL = """
CREATE STREAM r (zip STRING, amount DECIMAL(10,2), at TIMESTAMP, day DATE)
FROM 'orders' TIME at
OPTIONS (delimiter ';', nullValue 'NA', encoding 'windows-1252',
         timestampFormat 'dd.MM.yyyy HH:mm');

SELECT day, zip, SUM(amount) AS amount, COUNT(*) AS n FROM r [RANGE 1 HOUR] GROUP BY day, zip;
"""
RUN = ["run", "q.sql", "--master", "none", "--out", "out", "--format", "json"]
NOW = [*RUN, "--checkpoint", "ckpt", "--available-now"]


def put(day: str, name: str, *rows: str) -> None:
    folder = Path("orders") / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["amount;zip;at;note", *rows]) + "\n"
    data = text.encode("cp1252")
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def lines(pattern: str) -> list[dict[str, object]]:
    return [
        json.loads(line)
        for path in sorted(Path("out").glob(pattern))
        for line in path.read_text().splitlines()
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(SQL)
    put("2024-01-31", "a.csv.gz", "12.50;00123;31.01.2024 10:00;é", "NA;00123;31.01.2024 10:30;")
    put("2024-01-31", "b.csv", "7;+4470;31.01.2024 11:00;", "7,5;+4470;31.01.2024 11:01;x")


def test_a_run_goes_on_with_new_files_of_declared_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(NOW) == 0
    put("2024-02-01", "a.csv.gz", "1.05;00123;01.02.2024 00:10;")
    assert invoke(NOW) == 0
    assert invoke([*RUN, "--checkpoint", "ckpt"]) == 0
    found = [(r["day"], r["zip"], str(r["amount"]), r["n"]) for r in lines("batch=*/*.json")]
    assert found == [
        ("2024-01-31", "00123", "12.5", 2),
        ("2024-01-31", "+4470", "7.0", 1),
        ("2024-02-01", "00123", "1.05", 1),
    ]
    (rejected,) = lines("_rejected/*/*.json")
    assert rejected["_source"] == "orders/day=2024-01-31/b.csv"
    assert rejected["_reason"] == "line 3, column amount: '7,5' is not a decimal(10,2)"
    Path("q.sql").write_text(SQL.replace("nullValue 'NA', ", ""))
    assert invoke(NOW) == 2
    assert "ckpt" in capsys.readouterr().err


def test_explain_tells_types_and_where_they_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "q.sql", "--master", "none"]) == 0
    said = capsys.readouterr().out
    assert "columns, declared: zip string, amount decimal(10,2), at timestamp, day date" in said
    assert "options: encoding 'cp1252', nullValue 'NA', sep ';', timestampFormat" in said
    Path("plain.csv").write_text('ts,zip,n\n2024-01-01,00123,"4"\n')
    Path("p.sql").write_text("CREATE STREAM p FROM 'plain.csv'; SELECT zip FROM p")
    assert invoke(["explain", "p.sql", "--master", "none"]) == 0
    columns = "inferred from the first row of plain.csv: ts date, zip string, n string"
    assert f"columns, {columns}" in capsys.readouterr().out
