"""What a summary says of rows that came late or could not be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import invoke
from tidegate.driver.report.side import disorder_text

SQL = """
CREATE STREAM rides FROM 'rides' TIME ts DISORDER 1 SECOND;
SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route
"""
WHO = "  stream rides: {} rows came late, the latest in rides/{}.csv."
ENOUGH = (
    " Write DISORDER {} SECONDS after its TIME to take them in, and start from an empty checkpoint."
)
FIRST = (
    "2 rows were rejected; the first, in rides/a.csv: line 9, column ts: 'never' is not a timestamp"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fiftieth row of two files is late, in the second more so; two have no time."""
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(SQL)
    Path("rides").mkdir()
    for name, first, back in (("a", 0, 30), ("b", 150, 37.5)):
        rows = [row(i - back if i % 50 == 0 and i else i) for i in range(first, first + 150)]
        rows.insert(7, "never,a")
        Path(f"rides/{name}.csv").write_text("\n".join(["ts,route", *rows]) + "\n")


def row(at: float) -> str:
    return f"2024-01-01T00:{int(at) // 60:02d}:{at % 60:04.1f}Z,a"


def run(capsys: pytest.CaptureFixture[str], *options: str, batch_rows: int = 40) -> list[str]:
    cut = ("--batch-rows", str(batch_rows))
    code = invoke(["run", "q.sql", "--master", "none", *cut, *options])
    assert code == 0
    return capsys.readouterr().err.splitlines()


def test_who_was_late_and_what_would_have_helped(capsys: pytest.CaptureFixture[str]) -> None:
    kept = ("--out", "o", "--checkpoint", "c")
    said = run(capsys, *kept, "--summary", "s.json")
    who = WHO.format(4, "b") + ENOUGH.format(37)
    told = ["4 rows came late, 1.3% of all", who, "  late rows are in o/_late"]
    told += [FIRST, "  rejected rows are in o/_rejected"]
    assert said[-5:] == told
    summary = json.loads(Path("s.json").read_text())
    assert summary["late"] == {
        "rides": {"rows": 4, "disorder_us": 36_500_000, "source": "rides/b.csv"}
    }
    assert run(capsys, *kept)[-5:] == told, "a checkpoint knows it"


def test_the_disorder_that_it_names_suffices(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(SQL.replace("1 SECOND;", "37 SECONDS;"))
    assert any("rows in, 30 out, 0 late" in line for line in run(capsys))
    Path("q.sql").write_text(SQL.replace("1 SECOND;", "36 SECONDS;"))
    assert any("rows in, 30 out, 2 late" in line for line in run(capsys))


def test_it_is_counted_over_runs_that_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The first row of the second file is late too, because the first file was read before."""
    later = Path("rides/b.csv").rename("b.csv")
    kept = ("--out", "o", "--checkpoint", "c")
    said = run(capsys, *kept, "--available-now")
    assert WHO.format(2, "a") + ENOUGH.format(29) in said
    later.rename("rides/b.csv")
    assert run(capsys, *kept)[-5:-2] == [
        "5 rows came late, 1.7% of all",
        WHO.format(5, "b") + ENOUGH.format(37),
        "  late rows are in o/_late",
    ]


def test_without_a_folder_it_says_how_to_keep_them(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys)
    for kind in ("late", "rejected"):
        kept = f"--out DIR keeps them in DIR/_{kind}"
        assert f"  {kind} rows were only shown, the first 10; {kept}" in said


def test_a_small_share_is_only_counted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(i / 5) for i in range(1500)]
    rows.append(row(3))
    Path("rides/a.csv").write_text("\n".join(["ts,route", *rows]) + "\n")
    Path("rides/b.csv").unlink()
    assert "1 row came late, less than 0.1% of all" in run(capsys, batch_rows=5000)


@pytest.mark.parametrize(
    ("needed_us", "text"),
    [
        (1, "1 MILLISECOND"),
        (250_000, "250 MILLISECONDS"),
        (1_500_001, "1501 MILLISECONDS"),
        (44_200_000, "45 SECONDS"),
        (120_000_001, "3 MINUTES"),
        (86_400_000_000, "1 DAY"),
        (3 * 86_400_000_000 + 1, "4 DAYS"),
    ],
)
def test_a_disorder_is_rounded_up_to_what_a_person_would_write(needed_us: int, text: str) -> None:
    assert disorder_text(needed_us) == text
