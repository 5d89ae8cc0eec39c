"""Digests are equal whatever the cut, instances, switch or crash; verify names what changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import invoke

_SQL = """CREATE STREAM r FROM 'in.csv' TIME ts;
SELECT k, COUNT(*) AS n, AVG(v) AS a FROM r [RANGE 10 SECONDS] GROUP BY k;"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"2024-01-01T00:00:{i % 60:02d}Z,{'abc'[i % 3]},{i * 1.5}" for i in range(60)]
    Path("in.csv").write_text("\n".join(["ts,k,v", *rows]) + "\n")
    Path("q.sql").write_text(_SQL)
    return tmp_path


def _run(name: str, *options: str) -> dict[str, dict[str, object]]:
    places = ["--out", f"out-{name}", "--checkpoint", f"ck-{name}", "--summary", f"{name}.json"]
    assert invoke(["run", "q.sql", "--master", "none", *places, *options]) == 0
    found: dict[str, dict[str, object]] = json.loads(Path(f"{name}.json").read_text())["digests"]
    return found


def _answer(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    capsys.readouterr()
    assert invoke(words) == code
    return capsys.readouterr().out


@pytest.mark.usefixtures("work")
def test_a_digest_depends_on_rows_alone(capsys: pytest.CaptureFixture[str]) -> None:
    ways = (["--batch-rows", "7"], ["--instances", "3"], ["--batch-rows", "9", "--switch", "2=3"])
    whole = _run("whole")
    assert whole[""]["rows"] == 18
    for number, options in enumerate(ways):
        assert _run(f"way-{number}", *options) == whole
        for place in (f"out-way-{number}", f"ck-way-{number}"):
            said = _answer(capsys, 0, "digest", place, "--json")
            assert json.loads(said)["digests"] == whole


@pytest.mark.usefixtures("work")
def test_a_digest_can_end_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    _run("one", "--batch-rows", "7")
    _run("two")
    ends = ["--until", "2024-01-01T00:00:30Z", "--json"]
    said = [_answer(capsys, 0, "digest", place, *ends) for place in ("out-one", "ck-two")]
    assert said[0] == said[1]
    assert json.loads(said[0])["digests"][""]["rows"] == 9


@pytest.mark.usefixtures("work")
def test_verify_says_equal(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7")
    assert "equal" in _answer(capsys, 0, "verify", "ck-x", "q.sql")


@pytest.mark.usefixtures("work")
def test_verify_compares_csv_by_its_digest(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--format", "csv")
    assert "equal" in _answer(capsys, 0, "verify", "ck-x", "q.sql")


@pytest.mark.usefixtures("work")
def test_verify_finds_a_flipped_bit_of_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "30")
    part = sorted(Path("out-x").glob("batch=*/part-*"))[0]
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["output"]
    assert part.name in facts["outputs"][""]["files"][0]


@pytest.mark.usefixtures("work")
def test_verify_finds_a_swapped_row_of_the_input(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace("24Z,a,36.0", "24Z,b,36.0"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["input"]
    assert facts["outputs"][""]["difference"]["row"] == 6
    before = ["verify", "ck-x", "q.sql", "--to", "2024-01-01T00:00:20Z"]
    assert "equal" in _answer(capsys, 0, *before)


@pytest.mark.usefixtures("work")
def test_verify_finds_a_changed_query(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    Path("q.sql").write_text(_SQL.replace("AVG(v)", "MAX(v)"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["code"]
    assert facts["outputs"][""]["difference"]["row"] == 0
