"""`--handover` on the command line: told by explain, recorded, refused where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli.main import invoke

CALLS = "CREATE STREAM calls FROM 'generator:calls?rows=4000&rate=50&keys=40' TIME ts;\n"
TIMED = CALLS + (
    "SELECT district, COUNT(*) AS n FROM calls [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY district"
)
COUNTED = CALLS + "SELECT district, COUNT(*) AS n FROM calls [ROWS 5] GROUP BY district"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("timed.sql").write_text(TIMED)
    Path("counted.sql").write_text(COUNTED)


def run(out: str, *options: str) -> list[bytes]:
    """The output of the query, with two switches unless told otherwise."""
    asked = ["--instances", "2", "--batch-rows", "300", "--format", "csv", "--summary", f"{out}.js"]
    assert invoke(["run", "timed.sql", "--master", "none", "--out", out, *asked, *options]) == 0
    return [path.read_bytes() for path in sorted(Path(out).rglob("*.csv"))]


def test_the_epochs_say_how_buckets_were_handed_over(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = run("plain")
    switches = ("--switch", "3=5", "--switch", "7=1")
    for handover in ("auto", "shared", "state", "window"):
        assert run(handover, *switches, "--handover", handover) == wanted
        epochs = json.loads(Path(f"{handover}.js").read_text())["epochs"][1:]
        assert [e["handover"] for e in epochs] == ["shared" if handover == "auto" else handover] * 2
        reason = "all instances share the files of one host" if handover == "auto" else "asked for"
        assert {e["handover_why"] for e in epochs} == {reason}
        assert all(e["buckets_moved"] > 10 for e in epochs)
        assert all((e["bytes_moved"] > 0) == (handover == "state") for e in epochs)


def test_explain_says_how_buckets_would_be_handed_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["explain", "timed.sql", "--master", "none"]) == 0
    assert "\n    handover: shared (all instances share the files of one host)\n" in (
        capsys.readouterr().out
    )
    assert invoke(["explain", "timed.sql", "--master", "spark://host:7077"]) == 0
    assert (
        "\n    handover: window where 10 seconds of time pass sooner than the state that moves is "
        "loaded at 100 MB/s, else state (instances are on several hosts)\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["explain", "timed.sql", "--master", "spark://host:7077", "--handover", "shared"],
            "--handover: shared needs instances and checkpoint on one host; got instances are on "
            "several hosts. Use --handover auto, state or window.",
        ),
        (
            ["run", "counted.sql", "--master", "none", "--out", "out", "--handover", "window"],
            "--handover: window is for joins, and for windows of time or of tuples without groups; "
            "got aggregate: its windows count the tuples of each group. Use --handover auto, which "
            "hands its buckets over by their state.",
        ),
    ],
)
def test_a_handover_that_cannot_be_is_refused(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(command) == 2
    assert message in capsys.readouterr().err
    assert not Path("out").exists()
