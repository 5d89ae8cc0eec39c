"""`tidegate calibrate`, and `tidegate plan --rate` with what it has written."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.command.calibrate import calibrate
from tidegate.cli.main import invoke

JOIN = """
CREATE STREAM a FROM 'generator:calls?rows=2000&rate=100&keys=40&seed=1' TIME ts;
CREATE STREAM b FROM 'generator:calls?rows=2000&rate=100&keys=40&seed=2' TIME ts;
SELECT a.src, b.dst FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS]
ON a.lat BETWEEN b.lat - 0.01 AND b.lat + 0.01 WHERE a.district < 100
"""
CHAIN = """
CREATE STREAM calls FROM 'generator:calls?rows=3000&rate=100&keys=40' TIME ts;
CREATE STREAM seconds AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 1 SECOND] GROUP BY district;
SELECT district, MAX(n) AS most FROM seconds [RANGE 5 SECONDS] GROUP BY district
"""
CONSTANTS = ("alpha", "beta", "sigma", "comparison", "tuple_s", "batch_s")
Shown = Callable[..., list[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with queries, measured once for all tests."""
    place = tmp_path_factory.mktemp("calibrated")
    (place / "join.sql").write_text(JOIN)
    (place / "chain.sql").write_text(CHAIN)
    (place / "empty.sql").write_text(
        "CREATE STREAM none (ts TIMESTAMP, x INT) FROM 'none.csv' TIME ts; SELECT x FROM none"
    )
    (place / "none.csv").write_text("ts,x\n")
    (place / "few.sql").write_text(JOIN.replace("rows=2000", "rows=3"))
    return place


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    def run(*words: str) -> list[str]:
        capsys.readouterr()  # what measuring has said
        assert invoke([*words, "--master", "none"]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.splitlines()

    return run


def measured(query: str, *more: str) -> str:
    """The file of a calibration, made where it is not there yet."""
    file = Path(f"{query}.json")
    if not file.exists():
        words = ["calibrate", f"{query}.sql", "--master", "none", "--json", str(file), *more]
        assert invoke(words) == 0
    return str(file)


@pytest.mark.parametrize(
    ("words", "query", "file"),
    [
        ("--json q.sql", "q.sql", "-"),
        ("--rows 5 --json q.sql --master none", "q.sql", "-"),
        ("q.sql --json", "q.sql", "-"),
        ("q.sql --json f", "q.sql", "f"),
        ("--json f q.sql", "q.sql", "f"),
        ("--json -e SQL", None, "-"),
        ("-e SQL --json f", None, "f"),
        ("--json - ", "-", "-"),
        ("--json=f", None, "f"),
    ],
)
def test_json_takes_no_query_for_its_file(words: str, query: str | None, file: str) -> None:
    given = calibrate.make_context("calibrate", words.split()).params
    assert (given["query"], given["json_file"]) == (query, file)


def test_the_table_and_the_file(shown: Shown) -> None:
    lines = shown("calibrate", "join.sql", "--method", "scan", "--json", "join.json")
    first = r"([\d,]+) rows in (\d+) batches, 1 instance in this process, \d+ cores?"
    found = re.fullmatch(first, lines[0])
    assert found is not None
    assert int(found[2]) >= 10
    assert (
        lines[1] == "join: join, keeps 5 seconds of the left side and 5 seconds of the right, scan"
    )
    assert lines[2].split("  ")[1].strip() == "constant"
    names = [line.strip().split("  ")[0] for line in lines[3:10]]
    assert names == ["alpha", "beta", "sigma", "alpha + sigma beta", "tuple", "batch", "scatter"]
    assert lines[-1] == "written to join.json"
    written = json.loads(Path("join.json").read_text())
    assert written["facts"]["query"] == "join.sql"
    assert {"tidegate", "python", "machine", "cores", "master", "windows"} <= set(written["facts"])
    (join,) = written["subqueries"]
    assert (join["kind"], join["method"]) == ("join", "scan")
    constants: dict[str, Any] = join["constants"]
    for name in CONSTANTS:
        of = constants[name]
        assert 0 <= of["low"] <= of["value"] <= of["high"]
    assert constants["batch_s"]["value"] > 0
    assert 0 < constants["sigma"]["value"] < 1
    (left, right) = join["sides"]
    assert left[1] < left[0], "the filter takes some of the left side away"
    assert abs(right[1] - right[0]) <= 2, "all of the right side go in, but for those that wait"


def test_an_input_with_fewer_rows_is_run_in_smaller_batches(shown: Shown) -> None:
    """The 200,000 rows that are asked for unless others are would be all of it in one batch."""
    lines = shown("calibrate", "chain.sql", "--json", "chain.json")
    assert re.match(r"[23],\d\d\d rows in (2|3)\d batches", lines[0])
    assert "seconds: aggregate over [RANGE 1 second] by district" in lines
    assert "aggregate2: aggregate over [RANGE 5 seconds] by district" in lines
    assert sum(line.strip().startswith("tuple ") for line in lines) == 3
    assert lines[-7] == "beside the instances:"
    assert lines[-2].strip().startswith("scatter ")
    assert not any("alpha" in line or "sigma" in line for line in lines)


def test_a_plan_for_rates_from_a_file(shown: Shown) -> None:
    measured("join", "--method", "scan")
    lines = shown(
        "plan", "join.sql", "--method", "scan", "--rate", "10", "--calibration", "join.json"
    )
    assert lines[0] == "at 20 tuples a second (10 of a, 10 of b)"
    assert lines[1].split()[:3] == ["instances", "load", "batch"]
    assert lines[2].split()[0] == "1"
    assert re.search(r"\d[\d.,]* (ms|s) +[\d.,]+ to [\d.,]+ (ms|s)", lines[2])
    assert lines[-2] == "proposed: 1 instance"
    words = shlex.split(lines[-1])
    assert words[words.index("run") :][:2] == ["run", "join.sql"]
    assert words[-2:] == ["--instances", "join=1"]
    assert invoke([*words[words.index("run") :], "--out", "results"]) == 0


def test_what_cannot_be_had_is_said_with_the_best_there_is(shown: Shown) -> None:
    measured("join", "--method", "scan")
    given = ("plan", "join.sql", "--method", "scan", "--calibration", "join.json")
    lines = shown(*given, "--rate", "a=5e7", "--rate", "b=5e7")
    assert lines[0] == "at 100,000,000 tuples a second (50,000,000 of a, 50,000,000 of b)"
    assert "falls behind" in lines[2]
    pattern = r"the only core cannot keep up: the most is [\d,]+ tuples a second"
    assert re.fullmatch(pattern, lines[3])
    pattern = r"with any number of instances the most is [\d,]+ tuples a second"
    assert re.fullmatch(pattern, lines[4])
    assert lines[5] == "the best there is: 1 instance"
    lines = shown(*given, "--rate", "100", "--latency", "50 microseconds")
    assert lines[0] == "at 200 tuples a second (100 of a, 100 of b), within 50 us"
    assert re.fullmatch(
        r"a batch takes [\d.]+ ms \([\d.]+ to [\d.]+ ms\) however small it is: "
        r"no latency can be below that",
        lines[3],
    )


def test_a_plan_for_batches_that_wait_for_a_trigger(shown: Shown) -> None:
    measured("join", "--method", "scan")
    given = ("plan", "join.sql", "--method", "scan", "--calibration", "join.json", "--rate", "100")
    lines = shown(*given, "--trigger", "2 seconds")
    assert lines[0] == "at 200 tuples a second (100 of a, 100 of b), a batch every 2 s"
    latency = re.search(r"([\d.,]+) s +[\d.,]+ to [\d.,]+ s", lines[2])
    assert latency is not None
    assert 1.0 < float(latency[1]) < 1.5, "half the trigger, and a batch"
    words = shlex.split(lines[-1])
    assert words[words.index("--trigger") + 1] == "2 seconds"
    lines = shown(*given, "--trigger", "2 seconds", "--latency", "500 ms")
    assert lines[3] == (
        "batches are 2 s apart, so a tuple waits 1 s for one: a shorter trigger helps"
    )


def test_a_plan_measures_where_there_is_no_file_and_has_instances_for_each(shown: Shown) -> None:
    lines = shown("plan", "chain.sql", "--rate", "50", "--latency", "1 hour")
    assert lines[0] == "at 50 tuples a second, within 3,600 s"
    assert lines[2].strip().startswith("seconds 1, aggregate2 1 ")
    assert lines[-2] == "proposed: 2 instances"
    assert lines[-1].endswith("--instances seconds=1 --instances aggregate2=1")


def test_what_the_rows_do_not_show_is_said(shown: Shown) -> None:
    Path("long.sql").write_text(CHAIN.replace("[RANGE 1 SECOND]", "[RANGE 1 HOUR]"))
    lines = shown("calibrate", "long.sql", "--json", "long.json")
    unknown = "so what it costs is not known: more rows say more"
    assert f"aggregate2: no tuple came to it, {unknown}" in lines
    assert "  nothing was put out, so what that costs is not known: more rows say more" in lines
    lines = shown("plan", "long.sql", "--rate", "50", "--calibration", "long.json")
    assert f"aggregate2: no tuple came to it, {unknown}" in lines
    assert lines[-2] == "proposed: 2 instances"


def test_instances_for_cores_and_costs_of_another_place(
    shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    file = measured("join", "--method", "scan")
    capsys.readouterr()
    words = ["plan", "join.sql", "--method", "scan", "--master", "local[8]"]
    assert invoke([*words, "--rate", "1e6", "--instances", "3", "--calibration", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "3"]
    assert lines[5] == "measured with --master none: on local[8] batches cost otherwise"
    assert re.fullmatch(r"the 8 cores cannot keep up: .*", lines[6])


def test_a_simulation_with_the_costs_of_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    file = measured("join", "--method", "scan")
    capsys.readouterr()
    constants = json.loads(Path(file).read_text())["subqueries"][0]["constants"]
    words = ["simulate", "--experiment", "section7", "--calibration", file]
    assert invoke([*words, "--alpha", "3e-7"]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    beta, sigma = (constants[name]["value"] for name in ("beta", "sigma"))
    assert f"alpha 3e-07, beta {beta:g}, sigma {sigma:g}," in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["calibrate", "empty.sql"],
            "calibrate: needs rows to measure; got none. Look whether the streams have any.",
        ),
        (
            ["calibrate", "few.sql"],
            "calibrate: needs rows for 10 batches at least; got 6, which make 0. "
            "Give the streams more rows.",
        ),
        (["calibrate", "join.sql", "--rows", "0"], "--rows: must be at least 1; got 0."),
        (["calibrate", "join.sql", "--instances", "0"], "--instances: must be at least 1; got 0."),
        (
            ["calibrate", "join.sql", "--json", "no/where.json"],
            "--json: must be a file that can be written; "
            "got no/where.json: there is no folder FOLDER/no.",
        ),
        (
            ["calibrate", "join.sql", "--json", "."],
            "--json: must be a file that can be written; got ., a folder.",
        ),
        (
            ["plan", "join.sql", "--rate", "fast"],
            "--rate: must be tuples a second, or NAME=RATE; got fast. "
            "Write for example --rate 20000.",
        ),
        (["plan", "join.sql", "--rate", "-5"], "--rate: must be above zero; got -5."),
        (["plan", "join.sql", "--rate", "nan"], "--rate: must be a finite number; got nan."),
        (["plan", "join.sql", "--rate", "inf"], "--rate: must be a finite number; got inf."),
        (
            ["plan", "join.sql", "--rate", "c=5"],
            "--rate: must name a stream of the query; got c. There are: a, b.",
        ),
        (
            ["plan", "join.sql", "--rate", "a=5"],
            "--rate: must say how fast every stream is; got none for b. "
            "Add --rate b=RATE, or a number for all of them.",
        ),
        (
            ["plan", "join.sql", "--rate", "a=5", "--rate", "a=6"],
            "--rate: a stream can be named once; got a twice.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--rate", "6"],
            "--rate: one number for all streams is possible; got 6.",
        ),
        (
            ["plan", "join.sql", "--trigger", "1 second"],
            "--trigger: needs --rate; got none. Say how many tuples come in a second.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--trigger", "-1 second"],
            "--trigger: must not be negative; got -1 second.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--latency", "soon"],
            "--latency: a duration must be a number and a unit; got 'soon'. "
            'Write for example "15 minutes" or "500 ms".',
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--latency", "0 ms"],
            "--latency: must be above zero; got 0 ms.",
        ),
        (
            ["plan", "join.sql", "--latency", "5 ms"],
            "--latency: needs --rate; got none. Say how many tuples come in a second.",
        ),
        (
            ["plan", "join.sql", "--calibration", "join.json"],
            "--calibration: needs --rate; got none. Say how many tuples come in a second.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--calibration", "nothing.json"],
            "--calibration: must be a calibration; got no such file nothing.json. "
            "`tidegate calibrate QUERY.sql --json FILE` writes one.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--calibration", "none.csv"],
            "--calibration: must be a calibration; got none.csv, which is not JSON. "
            "`tidegate calibrate QUERY.sql --json FILE` writes one.",
        ),
        (
            ["plan", "join.sql", "--rate", "5", "--calibration", "join.json"],
            "--calibration: must be a calibration of this plan (join band); got join scan. "
            "Make one with `tidegate calibrate`, with the same options.",
        ),
        (
            ["simulate", "--experiment", "section7", "--calibration", "chain.json"],
            "--calibration: must be of a query with one join that took tuples; got one without.",
        ),
        (
            ["plan", "chain.sql", "--rate", "5", "--calibration", "join.json"],
            "--calibration: must be a calibration of this query; got that of join.sql. "
            "Make one with `tidegate calibrate`, with the same options.",
        ),
    ],
)
def test_mistakes(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "join.json" in words:
        measured("join", "--method", "scan")
    if "chain.json" in words:
        measured("chain")
    capsys.readouterr()
    master = ["--master", "none"] if words[0] != "simulate" else []
    assert invoke([*words, *master]) == 2
    assert capsys.readouterr().err == f"tidegate: {message.replace('FOLDER', str(folder))}\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calibration": 7}, "must have the format 1; got damaged.json with the format 7."),
        (
            {"subqueries": [{}]},
            "must be a calibration; got damaged.json, where something is missing or damaged",
        ),
        ({"calibration": None}, "must be a calibration; got damaged.json, which is other JSON."),
    ],
)
def test_files_that_are_damaged(
    change: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written = json.loads(Path(measured("join", "--method", "scan")).read_text())
    capsys.readouterr()
    Path("damaged.json").write_text(json.dumps({**written, **change}))
    words = ["plan", "join.sql", "--rate", "5", "--calibration", "damaged.json"]
    assert invoke([*words, "--master", "none"]) == 2
    assert capsys.readouterr().err.startswith(f"tidegate: --calibration: {message}")
