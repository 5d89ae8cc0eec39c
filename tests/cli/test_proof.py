"""Digests are equal whatever the cut, instances, switch or crash; verify names what changed.

And why lists the tuples of a row.
"""

from __future__ import annotations

import json
import shutil
import zlib
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
    ways = (
        ["--batch-rows", "7"],
        ["--instances", "3", "--format", "csv"],
        ["--batch-rows", "9", "--switch", "2=3", "--format", "json"],
    )
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
    _run("two", "--format", "csv")
    ends = ["--until", "2024-01-01T00:00:30Z", "--json"]
    places = ("out-one", "ck-one", "out-two", "ck-two")
    said = [_answer(capsys, 0, "digest", place, *ends) for place in places]
    assert len(set(said)) == 1
    assert json.loads(said[0])["digests"][""]["rows"] == 9


_FORMATS = pytest.mark.parametrize("format", ["parquet", "csv", "json"])

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
    Path("elsewhere/data").mkdir(parents=True)
    assert invoke(["digest", "elsewhere"]) == 2
    assert "or an output folder with batches; got neither" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("name", ["batch=00000000/part-00000.parquet", "part-00000.parquet"])
def test_results_beside_the_folders_of_several_outputs_are_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("q.sql").write_text(_SEVERAL)
    _run("x", "--batch-rows", "7")
    added = Path("out-x", name)
    added.parent.mkdir(exist_ok=True)
    shutil.copy(next(Path("out-x/sums").glob("batch=*/part-*")), added)
    assert invoke(["digest", "out-x"]) == 1
    top = name.partition("/")[0]
    assert f"in the folders of its outputs; got {top}" in capsys.readouterr().err
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["output"]
    problem = f"{Path('out-x', top).absolute()}: no batch has published it"
    assert {tuple(of["files"]) for of in facts["outputs"].values()} == {(problem,)}


@pytest.mark.usefixtures("work")
def test_an_output_without_rows_has_a_digest(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(_SEVERAL.replace("v > 60", "v > 6000"))
    recorded = _run("x")
    assert recorded["dear"]["rows"] == 0
    assert json.loads(_answer(capsys, 0, "digest", "out-x", "--json"))["digests"] == recorded
    said = _answer(capsys, 0, "digest", "out-x/dear")
    assert said == f"digest {recorded['dear']['digest']}, 0 rows\n"


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
    assert invoke(["digest", "out-x"]) == 1
    said = capsys.readouterr().err
    assert f"got {part.absolute()}: other bytes than were written. " in said
    shutil.rmtree("out-x/_ledger")
    assert invoke(["digest", "out-x"]) == 1
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
@_FORMATS
@pytest.mark.parametrize("harm", ["bit", "swap", "more", "less", "gone", "added", "ledger"])
def test_harm_to_an_output_is_named(
    format: str, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `digest` of its files and by `verify`; `why` of a row is not misled by another one."""
    _run("x", "--format", format, "--batch-rows", "25")
    part = sorted(Path("out-x").glob("batch=*/part-*"))[0]
    place = _harmed(part, harm).absolute()
    assert invoke(["digest", "out-x"]) == 1
    assert str(place) in capsys.readouterr().err
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["output"]
    assert str(place) in facts["outputs"][""]["files"][0]
    difference = facts["outputs"][""]["difference"]
    if format != "parquet" and harm in ("swap", "more", "less"):
        at = {"swap": 0, "more": 2, "less": 1}[harm]
        assert difference["row"] == at
        assert difference["recorded"] != difference["now"]
    assert invoke(["why", "ck-x", "--row", "17"]) == (1 if harm == "more" else 0)
    said = "Output, input or code has changed: `tidegate verify` says which."
    assert (said in capsys.readouterr().err) == (harm == "more"), "it is the row before now"


def _harmed(part: Path, harm: str) -> Path:
    """Do it to a part, and say what has to be named."""
    lines = part.read_bytes().splitlines(keepends=True)
    begin = 1 if part.suffix == ".csv" else 0
    if harm == "bit":
        data = bytearray(part.read_bytes())
        data[-3] ^= 1
        part.write_bytes(data)
    elif harm == "gone":
        part.unlink()
    elif harm == "added":
        return shutil.copy(part, part.with_name(f"part-00001{part.suffix}"))
    elif harm == "ledger":
        ledger = Path("out-x/_ledger", part.parent.name)
        ledger.write_bytes(ledger.read_bytes().replace(b'"rows": ', b'"rows": 1', 1))
        return ledger
    elif part.suffix == ".parquet":
        rows = pq.read_table(part)
        order = {"swap": [1, 0], "more": [0, 1, 1], "less": [0]}[harm]
        pq.write_table(rows.take([*order, *range(2, rows.num_rows)]), part)
    else:
        one, two = lines[begin : begin + 2]
        lines[begin : begin + 2] = {"swap": [two, one], "more": [one, two, two], "less": [one]}[
            harm
        ]
        part.write_bytes(b"".join(lines))
    return part


@pytest.mark.usefixtures("work")
@_FORMATS
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


_TEXT = pytest.mark.parametrize("format", ["csv", "json"])


@pytest.mark.usefixtures("work")
@_TEXT
def test_the_first_row_is_named_of_texts_too(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("x", "--format", format, "--batch-rows", "25")
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace("24Z,a,36.0", "24Z,a,37.0"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["input"]
    difference = facts["outputs"][""]["difference"]
    assert difference["row"] == 6
    sides = [difference[side] for side in ("recorded", "now")]
    assert [side["k"] for side in sides] == ["a", "a"]
    assert sides[0]["a"] != sides[1]["a"]
    before = ["verify", "ck-x", "--to", "2024-01-01T00:00:20Z"]
    assert (
        _answer(capsys, 0, *before) == "equal: 6 of the 18 rows that were committed were compared\n"
    )


@pytest.mark.usefixtures("work")
@_TEXT
def test_a_bit_of_a_text_is_found_without_the_ledger(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("x", "--format", format)
    part = next(Path("out-x").glob("batch=*/part-*"))
    shutil.rmtree("out-x/_ledger")
    assert "no such file: it was deleted" in _answer(capsys, 1, "verify", "ck-x")
    whole = part.read_bytes()
    for place in (len(whole) // 2, len(whole) - 20):
        data = bytearray(whole)
        data[place] ^= 1
        part.write_bytes(data)
        facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
        assert facts["changed"] == ["output"]
        of = facts["outputs"][""]
        assert of["difference"] or str(part) in of["files"][-1]


@pytest.mark.usefixtures("work")
@_TEXT
def test_a_value_that_cannot_be_read_is_named(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("x", "--format", format, "--batch-rows", "25")
    part = sorted(Path("out-x").glob("batch=*/part-*"))[0]
    part.write_bytes(part.read_bytes().replace(b"00:10.000000Z", b"00:1p.000000Z", 3))
    files = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))["outputs"][""]["files"]
    assert files[0] == f"{part.absolute()}: other bytes than were written"
    assert f"{part.absolute()}: row 0 of the file: column window_end must be a time" in files[1]


@pytest.mark.usefixtures("work")
@_TEXT
def test_an_output_of_an_earlier_version_is_compared_by_its_digest(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ledgers have no types, so that its rows cannot be read back."""
    _run("x", "--format", format)
    for ledger in Path("out-x/_ledger").iterdir():
        body = json.loads(ledger.read_bytes().partition(b" ")[2])
        assert body.pop("columns")
        text = json.dumps(body, sort_keys=True).encode()
        ledger.write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    assert _answer(capsys, 0, "verify", "ck-x").startswith("equal: the query gives")
    for words in (["digest", "out-x"], ["verify", "ck-x", "--to", "2024-01-01"]):
        assert invoke(words) == 2
        said = capsys.readouterr().err
        assert "must have rows that can be read back from its files; got" in said
    assert _answer(capsys, 0, "why", "ck-x", "--row", "17").startswith("row 17: ")
    Path("in.csv").write_text(Path("in.csv").read_text().replace("24Z,a,36.0", "24Z,a,37.0"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "--json"))
    assert facts["changed"] == ["input"]
    assert facts["outputs"][""]["difference"]["row"] is None


@pytest.mark.usefixtures("work")
def test_a_row_of_a_span_has_its_number_in_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    text = Path("in.csv").read_text()
    Path("in.csv").write_text(text.replace("45Z,a,67.5", "45Z,a,68.5"))
    for span in ([], ["--from", "2024-01-01T00:00:30Z"]):
        facts = json.loads(_answer(capsys, 1, "verify", "ck-x", *span, "--json"))
        assert facts["outputs"][""]["difference"]["row"] == 12


@pytest.mark.usefixtures("work")
def test_a_span_that_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "7")
    assert invoke(["run", "q.sql", "--master", "none", "--checkpoint", "ck-y"]) == 0
    for words, why in (
        (["ck-x", "--from", "2024-01-02", "--to", "2024-01-01"], "got one that ends before"),
        (["ck-y", "--to", "2024-01-02"], "must have files of all outputs"),
        (["ck-x", "--retained", "--to", "2024-01-01T00:00:20Z"], "whose states are not kept"),
        (["ck-x", "--stream", "rr=in.csv"], "--stream: must name a stream of the recorded query"),
    ):
        assert invoke(["verify", *words]) == 2
        assert why in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_a_digest_refuses_what_no_ledger_knows(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x", "--batch-rows", "25")
    first = min(Path("out-x").glob("batch=*"))
    part = next(first.iterdir())
    for added in (first / "part-00001.parquet", Path("out-x/batch=00000099/part-00000.parquet")):
        added.parent.mkdir(exist_ok=True)
        shutil.copy(part, added)
        assert invoke(["digest", "out-x"]) == 1
        named = added if added.parent == first else added.parent
        assert f"got {named.absolute()}: no batch has published it" in capsys.readouterr().err
        added.unlink()
    newest = max(Path("out-x").glob("batch=0000000?"))
    shutil.rmtree(newest)
    assert invoke(["digest", "out-x"]) == 1
    assert f"{newest.absolute()}/part-00000.parquet: no such file" in capsys.readouterr().err


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


@pytest.mark.usefixtures("work")
def test_verify_names_input_and_code_that_changed_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _run("x")
    Path("q.sql").write_text(_SQL.replace("AVG(v)", "MAX(v)"))
    Path("in.csv").write_text(Path("in.csv").read_text().replace("24Z,a,36.0", "24Z,b,36.0"))
    facts = json.loads(_answer(capsys, 1, "verify", "ck-x", "q.sql", "--json"))
    assert facts["changed"] == ["code", "input"]


@pytest.mark.usefixtures("work")
def test_verify_names_an_input_that_was_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    _run("x")
    Path("in.csv").unlink()
    assert invoke(["verify", "ck-x"]) == 1
    said = capsys.readouterr().err
    assert "in.csv" in said
    assert "The input has changed." in said


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
