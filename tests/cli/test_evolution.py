"""A query that grows on its checkpoint: old outputs go on as if nothing was, new ones begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.main import invoke

TOTALS = (
    "INSERT INTO totals SELECT k, SUM(v) AS s, COUNT(*) AS n FROM s [RANGE 60 SECONDS] GROUP BY k;"
)
MANY = TOTALS.replace("INTO totals", "INTO many").replace(";", " HAVING COUNT(*) > 19;")
WIDE = TOTALS.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(v) / COUNT(*) AS mean")
NEW = "INSERT INTO counts SELECT k, MAX(v) AS m FROM s [RANGE 30 SECONDS] GROUP BY k;"
INNER = "SELECT k, COUNT(*) AS n FROM s [RANGE 60 SECONDS] GROUP BY k"
OVER = f"INSERT INTO over SELECT MAX(n) AS m FROM ({INNER}) [RANGE 2 MINUTES];"
ALL, FIRST = 400, 173


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(first: int, last: int) -> str:
    times = (f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z" for i in range(first, last))
    lines = (f"{t},{'abc'[i % 3]},{i}\n" for i, t in zip(range(first, last), times, strict=True))
    return "ts,k,v\n" + "".join(lines)


def run(sql: str, *options: str, place: str = "x") -> int:
    common = ["--stream", "s=s.csv", "--master", "none", "--format", "csv", "--available-now"]
    kept = ["--checkpoint", f"{place}_ckpt", "--out", f"{place}_out", "--batch-rows", "50"]
    return invoke(["run", "-e", sql, *common, *kept, *options])


def written(output: str, place: str = "x") -> list[str]:
    """The rows of an output in their order, without the headers."""
    files = sorted(Path(f"{place}_out", output).glob("batch=*/*.csv"))
    return [line for file in files for line in file.read_text().splitlines()[1:]]


def whole(sql: str, output: str, first: int = 0) -> list[str]:
    """What a query that was always the same writes, over the rows from one on."""
    Path("s.csv").write_text(rows(first, ALL))
    assert run(sql, place=output) == 0
    return written(output, output)


def changed(sql: str, *options: str) -> int:
    """The totals over the first rows, then a changed query over the others too."""
    Path("s.csv").write_text(rows(0, FIRST))
    assert run(TOTALS) == 0
    Path("s.csv").write_text(rows(0, ALL))
    return run(sql, *options)


@pytest.mark.parametrize("instances", ["1", "3"])
def test_one_more_output_of_the_state_that_is_there(instances: str) -> None:
    assert changed(f"{TOTALS} {MANY}", "--instances", instances) == 0
    assert written("totals") == whole(TOTALS, "totals")
    later = [row for row in whole(TOTALS, "totals") if row >= "2024-01-01 00:02"]
    assert written("many") == [row for row in later if int(row.rpartition(",")[2]) > 19]
    assert len(written("many")) == 12
    assert run(f"{TOTALS} {MANY}") == 0  # and goes on


def test_one_more_column_of_the_state_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert changed(WIDE) == 0
    assert written("totals")[-3].startswith("2024-01-01 00:05:00")
    assert len(written("totals")[-3].split(",")) == 6


@pytest.mark.parametrize("instances", ["1", "3"])
def test_state_that_is_new_starts_empty_where_that_is_asked_for(instances: str) -> None:
    assert changed(f"{TOTALS} {NEW}", "--start-empty", "--instances", instances) == 0
    assert run(f"{TOTALS} {NEW}") == 0  # from now on it has state
    assert written("totals") == whole(TOTALS, "totals")
    assert written("counts") == whole(NEW, "counts", first=FIRST - 1)


def test_a_window_over_the_windows_that_are_there() -> None:
    assert changed(f"{TOTALS} {OVER}", "--start-empty") == 0
    assert written("totals") == whole(TOTALS, "totals")
    assert len(written("over")) == 2


def test_without_asking_it_is_refused_with_the_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert changed(f"{TOTALS} {NEW}") == 2
    said = capsys.readouterr().err
    assert (
        "got one of a query that differs: the checkpoint has state of totals, the query would keep "
        "state of totals, counts, and counts would start empty. What changed:\n"
        "  counts\n    + from s\n    + group by k (string)\n    + window RANGE 30 seconds\n"
    ) in said
    assert "  outputs\n    + output counts\n" in said
    assert "With --start-empty (in Python start_empty=True) it begins with the next tuples" in said
    assert run(TOTALS) == 0
    assert written("totals") == whole(TOTALS, "totals")


def test_the_start_says_what_starts_empty(caplog: pytest.LogCaptureFixture) -> None:
    assert changed(f"{TOTALS} {NEW}", "--start-empty") == 0
    said = [record.getMessage() for record in caplog.records]
    assert said[-1].endswith("outputs: + output counts; counts starts empty")


@pytest.mark.parametrize("instances", ["1", "3"])
def test_one_more_function_starts_empty_where_that_is_asked_for(
    instances: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = TOTALS.replace("COUNT(*) AS n", "COUNT(*) AS n, MIN(v) AS low")
    assert changed(more) == 2
    said = capsys.readouterr().err
    assert (
        "got one of a query that differs: the state of totals does not have MIN(v) of bigint, and "
        "MIN(v) of bigint would start empty. What changed:\n  totals\n    + select MIN(v) as low\n"
    ) in said
    assert "With --start-empty (in Python start_empty=True) it begins with the next tuples" in said
    assert run(more, "--start-empty", "--instances", instances) == 0
    assert run(more) == 0  # from now on it has state
    kept = [row.rpartition(",")[0] for row in written("totals")[6:]]
    lows = [int(row.rpartition(",")[2]) for row in written("totals")[6:]]
    assert kept == whole(TOTALS, "totals")[6:]
    assert lows[:3] == [174, 175, 173], "the tuples that came after the change, from 173 on"
    assert lows[3:6] == [180, 181, 182]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (NEW, "it does not have output totals any more"),
        (f"{NEW} {TOTALS}", "the state of counts was made with what has changed"),
        (MANY, "it does not have output totals any more"),
        (
            TOTALS.replace("RANGE 60", "RANGE 30"),
            "the state of totals was made with what has changed",
        ),
    ],
)
def test_what_cannot_be_is_refused_also_where_it_is_asked_for(
    sql: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changed(sql, "--start-empty") == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "What needs other state may come as one more output, last in the script." in said
    assert run(TOTALS) == 0
