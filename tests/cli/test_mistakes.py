"""What a careless user types: one clear line, exit code 2, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.main import invoke

RIDES = """\
ts,route,fare,note
2024-01-01T00:00:01Z,a,5.0,x
2024-01-01T00:00:02Z,b,7.5,y
"""
FROM = "FROM rides [RANGE 10 SECONDS]"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text(RIDES)
    Path("empty.csv").write_text("")
    Path("bad.parquet").write_text("not parquet")
    Path("notes.csv").write_text("a,b\n1,2\n")
    Path("some").mkdir()
    return tmp_path


def run(capsys, sql: str, *options: str) -> tuple[int, str]:
    Path("q.sql").write_text(sql)
    before = sorted(p.name for p in Path().iterdir())
    code = invoke(["run", "q.sql", "--master", "none", *options])
    message = capsys.readouterr().err.strip()
    after = sorted(p.name for p in Path().iterdir())
    assert after == before, "a mistake must leave nothing behind"
    assert "\n" not in message
    assert "Traceback" not in message
    return code, message


STREAM = ("--stream", "rides=rides.csv")

MISTAKES = [
    # the query
    ("SELEC route", STREAM, "SQL"),
    ("", STREAM, "a script needs exactly one SELECT; got none"),
    (f"SELECT COUNT(*) AS n {FROM}; SELECT 1", STREAM, "a script needs exactly one SELECT; got 2"),
    (f"SELECT rout, COUNT(*) AS n {FROM} GROUP BY rout", STREAM, "Did you mean route"),
    ("SELECT COUNT(*) AS n FROM ride [RANGE 10 SECONDS]", STREAM, "Did you mean rides"),
    ("SELECT COUNT(*) AS n FROM rides", STREAM, "needs a window"),
    ("SELECT route FROM rides [RANGE 10 SECONDS]", STREAM, "window"),
    (
        "SELECT COUNT(*) AS n FROM rides [RANGE 5 SECONDS SLIDE 10 SECONDS]",
        STREAM,
        "SLIDE",
    ),
    ("SELECT COUNT(*) AS n FROM rides [RANGE 0 SECONDS]", STREAM, "RANGE"),
    ("SELECT COUNT(*) AS n FROM rides [RANGE 10 PARSECS]", STREAM, "PARSECS"),
    (f"SELECT route, COUNT(*) AS n {FROM}", STREAM, "route"),
    (f"SELECT AVERAGE(fare) AS n {FROM}", STREAM, "AVERAGE"),
    (f"SELECT COUNT(*) AS n {FROM} WHERE SUM(fare) > 1", STREAM, "WHERE"),
    (f"SELECT COUNT(*) AS n {FROM} WHERE fare", STREAM, "boolean"),
    (f"SELECT MEDIAN(SUM(fare)) AS n {FROM}", STREAM, "aggregate"),
    (f"SELECT COUNT(*) AS n {FROM} ORDER BY n LIMIT many", STREAM, "LIMIT"),
    ("SELECT route FROM rides ORDER BY route", STREAM, "ORDER BY"),
    (f"SELECT COUNT(*) AS n {FROM} WHERE frobnicate(fare) > 1", STREAM, "frobnicate"),
    (f"SELECT COUNT(*) AS n, SUM(fare) AS n {FROM}", STREAM, "n"),
    (
        f"SELECT COUNT(*) AS n {FROM} WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT",
        STREAM,
        "not available yet",
    ),
    (f"SELECT COUNT(*) AS n {FROM} WITH LATENCY 2 SECONDS", STREAM, "not available yet"),
    (f"SELECT COUNT(*) AS n {FROM} WITH SHED 90 PERCENT BY UNIFORM", STREAM, "not available yet"),
    ("SELECT COUNT(*) AS n FROM rides [ROWS 5]", STREAM, "not available yet"),
    (
        "SELECT l.route FROM rides [RANGE 5 SECONDS] l JOIN rides [RANGE 5 SECONDS] r "
        "ON l.route = r.route",
        STREAM,
        "not available yet",
    ),
    ("DROP TABLE rides", STREAM, "a script holds CREATE STREAM statements and one SELECT"),
    # the streams
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=missing.csv"), "missing.csv"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=some"), "some"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=bad.parquet"), "bad.parquet"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=empty.csv"), "empty.csv"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=notes.csv"), "needs a time column"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides"), "must look like NAME=URI"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=kafka://x/y"), "kafka"),
    (f"SELECT COUNT(*) AS n {FROM}", ("--stream", "rides=generator:taxis"), "taxi"),
    (f"SELECT COUNT(*) AS n {FROM}", (), "rides"),
    (
        f"SELECT COUNT(*) AS n {FROM}",
        (*STREAM, "--stream", "rides=notes.csv", "--time", "rides=ts"),
        "notes.csv",
    ),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--time", "rides=tss"), "tss"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--time", "rides=fare"), "fare"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--time", "ride=ts"), "Did you mean rides"),
    # the options
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--instances", "0"), "must be at least 1; got 0"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--instances", "two"), "--instances"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--buckets", "-1"), "--buckets"),
    (
        f"SELECT COUNT(*) AS n {FROM}",
        (*STREAM, "--buckets", "4", "--instances", "5"),
        "must not exceed the number of buckets (4); got 5",
    ),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--batch-rows", "0"), "--batch-rows"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--switch", "3"), "must look like BATCH=N"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--switch", "x=y"), "must look like BATCH=N"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--switch", "1=0"), "must be at least 1"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--switch", "1=2", "--switch", "1=3"), "once"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--format", "xml", "--out", "o"), "parquet"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--out", "rides.csv"), "must be a folder"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--policy", "model"), "not available yet"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--partitioner", "pk"), "not available yet"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--dashboard"), "not available yet"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--summary", "no/such/place"), "--summary"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--colour", "red"), "--colour"),
    (f"SELECT COUNT(*) AS n {FROM}", (*STREAM, "--checkpoint", "rides.csv"), "rides.csv"),
]


@pytest.mark.parametrize(("sql", "options", "expected"), MISTAKES)
def test_a_mistake_is_one_clear_line(folder, capsys, sql, options, expected):
    code, message = run(capsys, sql, *options)
    assert code == 2, message
    assert message.startswith("tidegate: ")
    assert expected.lower() in message.lower()


def test_a_wrong_master_is_refused(folder, capsys):
    Path("q.sql").write_text(f"SELECT COUNT(*) AS n {FROM}")
    assert invoke(["run", "q.sql", *STREAM, "--master", "lokal"]) == 2
    assert "--master: must be none, local[N]" in capsys.readouterr().err


def test_a_missing_query_file_is_named(folder, capsys):
    assert invoke(["run", "nothing.sql", "--master", "none"]) == 2
    assert "nothing.sql" in capsys.readouterr().err


def test_state_of_what_is_no_checkpoint(folder, capsys):
    assert invoke(["state", "some"]) == 2
    assert "must be a Tidegate checkpoint" in capsys.readouterr().err


def test_a_function_only_spark_knows_says_so_without_spark(folder, capsys):
    sql = f"SELECT date_format(ts, 'HH') AS h, COUNT(*) AS n {FROM} GROUP BY date_format(ts, 'HH')"
    code, message = run(capsys, sql, *STREAM)
    assert code == 2
    assert "Spark" in message
