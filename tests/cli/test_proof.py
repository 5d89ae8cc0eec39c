"""Digests are equal whatever the cut, instances, switch or crash; verify names what changed.

And why lists the tuples of a row.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
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


_SEVERAL = """CREATE STREAM r FROM 'in.csv' TIME ts;
INSERT INTO sums SELECT k, SUM(v) AS a FROM r [RANGE 10 SECONDS] GROUP BY k;
INSERT INTO dear SELECT k, v FROM r WHERE v > 60;"""


@pytest.mark.usefixtures("work")
def test_a_folder_of_several_outputs_has_a_digest_of_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("q.sql").write_text(_SEVERAL)
    recorded = _run("x", "--batch-rows", "7")
    assert set(recorded) == {"sums", "dear"}
    assert json.loads(_answer(capsys, 0, "digest", "out-x", "--json"))["digests"] == recorded
    Path("elsewhere").mkdir()
    assert invoke(["digest", "elsewhere"]) == 2
    assert "or an output folder with batches; got neither" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_a_span_of_several_outputs_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    """Each by its own times: one row of the input shows in one window, and in one row."""
    Path("q.sql").write_text(_SEVERAL)
    _run("x", "--batch-rows", "7")
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace("45Z,a,67.5", "45Z,a,68.5"))
    spans = {
        ("--to", "2024-01-01T00:00:40Z"): [],
        ("--from", "2024-01-01T00:00:46Z", "--to", "2024-01-01T00:00:59Z"): ["sums"],
        ("--from", "2024-01-01T00:00:45Z", "--to", "2024-01-01T00:00:45Z"): ["dear"],
        ("--from", "2024-01-01T00:00:51Z"): [],
        (): ["sums", "dear"],
    }
    for span, differ in spans.items():
        said = _answer(capsys, 1 if differ else 0, "verify", "ck-x", *span, "--json")
        outputs = json.loads(said)["outputs"]
        assert {n for n, of in outputs.items() if of["difference"]} == set(differ), span


@pytest.mark.usefixtures("work")
def test_the_digest_of_a_damaged_file_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "30")
    part = sorted(Path("out-x").glob("batch=*/part-*"))[0]
    part.write_bytes(part.read_bytes()[:200] + bytes(50) + part.read_bytes()[250:])
    assert invoke(["digest", "out-x"]) == 2
    said = capsys.readouterr().err
    assert f"{part.parent.name}/{part.name}: must be as it was written; got " in said
    assert "tidegate verify CHECKPOINT" in said
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["output"]


@pytest.mark.usefixtures("work")
def test_verify_says_equal(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7")
    assert "equal" in _answer(capsys, 0, "verify", "ck-x", "q.sql")


@pytest.mark.usefixtures("work")
def test_verify_compares_csv_by_its_digest(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--format", "csv")
    assert "equal" in _answer(capsys, 0, "verify", "ck-x", "q.sql")


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("gone", ["batch=*", "batch=*/*", "_ledger", "_ledger/*"])
def test_verify_names_what_was_deleted(
    format: str, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("x", "--format", format, "--batch-rows", "25")
    path = max(Path("out-x").glob(gone))
    path.unlink() if path.is_file() else shutil.rmtree(path)
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["output"]
    assert any(str(path.absolute()) in problem for problem in facts["outputs"][""]["files"])


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
    compared = "equal: {} of the 18 rows that were committed were compared\n"
    assert _answer(capsys, 0, *before) == compared.format(6)
    later = ["verify", "ck-x", "q.sql", "--from", "2030-01-01"]
    assert _answer(capsys, 0, *later) == compared.format(0)


@pytest.mark.usefixtures("work")
def test_verify_finds_rows_that_were_added_to_the_input(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    with Path("in.csv").open("a") as file:
        file.write("2024-01-01T00:01:30Z,a,1\n")
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["input"]
    assert facts["outputs"][""]["difference"]["row"] == 18


@pytest.mark.usefixtures("work")
def test_verify_finds_another_output_without_its_ledger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _run("x", "--batch-rows", "30")
    part = sorted(Path("out-x").glob("batch=*/part-*"))[0]
    rows = pq.read_table(part)
    pq.write_table(rows.set_column(3, "n", pc.add(rows["n"], 1)), part)
    for ledger in Path("out-x/_ledger").iterdir():
        ledger.unlink()
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["output"]
    assert facts["outputs"][""]["difference"]["row"] == 0


@pytest.mark.usefixtures("work")
def test_verify_finds_a_changed_query(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    Path("q.sql").write_text(_SQL.replace("AVG(v)", "MAX(v)"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["code"]
    assert facts["outputs"][""]["difference"]["row"] == 0


def _tree(*places: str) -> dict[str, bytes]:
    files = (p for place in places for p in Path(place).rglob("*") if p.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.usefixtures("work")
def test_any_batch_that_is_kept_runs_again(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7", "--keep", "1 hour", "--switch", "3=2", "--instances", "3")
    before = _tree("ck-x", "out-x")
    rows = 0
    for batch in range(9):
        said = json.loads(
            _answer(capsys, 0, "replay", "ck-x", "q.sql", f"--batch={batch}", "--json")
        )
        assert (said["batch"], said["equal"]) == (batch, True)
        assert said["rows_in"] == min(7, 60 - 7 * batch)
        rows += said["outputs"][""]["rows"]
    assert rows == 18
    out = ["--out", "again", "--batch", "8"]
    assert "that were committed" in _answer(capsys, 0, "replay", "ck-x", "q.sql", *out)
    again = {path.removeprefix("again"): data for path, data in _tree("again").items()}
    newest = {p: d for p, d in before.items() if p.startswith("out-x/batch=00000008")}
    assert newest
    assert {again[path.removeprefix("out-x")] == data for path, data in newest.items()} == {True}
    assert _tree("ck-x", "out-x") == before


@pytest.mark.usefixtures("work")
def test_a_batch_that_is_not_kept_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7")
    assert "3 rows" in _answer(capsys, 0, "replay", "ck-x", "q.sql", "--batch", "8")
    for words, why in (
        (["ck-x", "q.sql", "--batch", "4"], "got those of 8. Choose one of these"),
        (["ck-x", "q.sql", "--batch", "8", "--out", "out-x"], "must be a new or an empty folder"),
        (["out-x", "q.sql", "--batch", "8"], "must be a checkpoint with batches"),
    ):
        assert invoke(["replay", *words]) == 2
        assert why in capsys.readouterr().err
    Path("q.sql").write_text(_SQL.replace("AVG(v)", "MAX(v)"))
    assert invoke(["replay", "ck-x", "q.sql", "--batch", "8"]) == 2
    assert "batch 8 must run with the query that made it" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_a_batch_whose_input_has_changed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7", "--keep", "1 hour")
    Path("in.csv").write_text(Path("in.csv").read_text().replace("24Z,a", "24Z,b"))
    assert invoke(["replay", "ck-x", "q.sql", "--batch", "4"]) != 0
    assert "in.csv" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_verify_begins_with_the_oldest_state(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7", "--keep", "1 hour", "--partitioner", "pk?d=2")
    said = ["verify", "ck-x", "q.sql", "--retained", "--partitioner", "pk?d=2"]
    assert "the recorded rows again (18 were" in _answer(capsys, 0, *said)
    _run("y", "--batch-rows", "7")
    said = _answer(capsys, 0, "verify", "ck-y", "q.sql", "--retained")
    assert "batches 8 to 8 give their recorded rows again" in said


@pytest.mark.usefixtures("work")
def test_the_state_of_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7", "--keep", "1 hour")
    at = ["state", "ck-x", "--at", "2024-01-01T00:00:30Z"]
    state = json.loads(_answer(capsys, 0, *at, "--json"))["state"]
    assert (state["batch"], state["frontier"]) == (3, "2024-01-01 00:00:27 UTC")
    assert state["counters"]["rows_in"] == 28
    text = _answer(capsys, 0, *at)
    assert "batch 3, committed 20" in text
    assert "every file" not in text
    assert "states of earlier batches: 0-6; " in _answer(capsys, 0, "state", "ck-x")
    assert "all are whole" in _answer(capsys, 0, *at, "--verify")
    assert invoke(["state", "ck-x", "--at", "2023-01-01T00:00:00Z"]) == 2
    assert "got the oldest after batch 0, of 2024-01-01T00:00:06Z" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_states_go_when_a_run_keeps_them_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--out", "out-x", "--checkpoint", "ck-x", "--master", "none", "--available-now"]
    assert invoke(["run", "q.sql", *places, "--batch-rows", "7", "--keep", "1 hour"]) == 0
    assert len(list(Path("ck-x/manifest").iterdir())) == 9
    with Path("in.csv").open("a") as file:
        file.write("2024-01-01T00:01:00Z,a,1\n")
    assert invoke(["run", "q.sql", *places]) == 0
    assert len(list(Path("ck-x/manifest").iterdir())) == 2
    for words in (["--keep", "1 hour"], ["--keep", "nothing", *places], ["--keep", "0 s", *places]):
        assert invoke(["run", "q.sql", "--master", "none", *words]) == 2
    assert "--keep: needs a checkpoint; got none." in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_why_lists_the_rows_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7")
    facts = json.loads(_answer(capsys, 0, "why", "ck-x", "q.sql", "--row", "4", "--json"))
    assert facts["values"]["k"] == "b"
    assert [(t["file"], t["row"]) for t in facts["tuples"]] == [
        ("in.csv", n) for n in (10, 13, 16, 19)
    ]
    said = _answer(capsys, 0, "why", "ck-x", "q.sql", "--where", "k = 'b' AND a > 20")
    assert said.startswith("row 4: ")
    assert said.endswith("run again over these tuples alone: the same row\n")


@pytest.mark.usefixtures("work")
def test_why_of_an_output_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--format", "csv")
    facts = json.loads(_answer(capsys, 0, "why", "ck-x", "q.sql", "--row", "17", "--json"))
    assert [t["row"] for t in facts["tuples"]] == [50, 53, 56, 59]


@pytest.mark.usefixtures("work")
def test_why_of_an_output_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    shutil.rmtree("out-x")
    facts = json.loads(_answer(capsys, 0, "why", "ck-x", "q.sql", "--row", "17", "--json"))
    assert [t["row"] for t in facts["tuples"]] == [50, 53, 56, 59]


@pytest.mark.usefixtures("work")
def test_why_says_that_the_input_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace("13Z,b,19.5", "13Z,b,20.5"))
    capsys.readouterr()
    assert invoke(["why", "ck-x", "q.sql", "--row", "4"]) == 1
    assert "must come again when the query is run" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_why_of_a_row_that_shed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(f"{_SQL[:-1]} WITH SHED 50 PERCENT BY UNIFORM;")
    _run("x")
    facts = json.loads(_answer(capsys, 0, "why", "ck-x", "q.sql", "--row", "0", "--json"))
    assert 0 < len(facts["tuples"]) == facts["again"]["tuples"] <= 4


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("words", [[], ["--row", "1", "--where", "n = 4"]])
def test_why_is_asked_of_one_row(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["why", "ck-x", "q.sql", *words]) == 2
    assert "takes --row or --where" in capsys.readouterr().err
