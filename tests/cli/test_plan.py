"""`tidegate plan`: a sample of a generated stream, and instances for the subqueries."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tidegate.cli.command.plan import bounded_by, limits
from tidegate.cli.main import invoke
from tidegate.model.speed_up import SpeedUp

SQL = """
CREATE STREAM calls FROM 'generator:calls?rows=4000&rate=50&keys=40' TIME ts;
CREATE STREAM minutes AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 10 SECONDS] GROUP BY district;
SELECT district, MAX(n) AS most FROM minutes [RANGE 1 MINUTE] GROUP BY district
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(SQL)


def planned(capsys: pytest.CaptureFixture[str], *options: str, cores: int = 8) -> list[str]:
    before = sorted(Path().iterdir())
    assert invoke(["plan", "q.sql", "--master", f"local[{cores}]", *options]) == 0
    assert sorted(Path().iterdir()) == before, "a sample leaves nothing behind"
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out.splitlines()


def test_the_table_and_a_command_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(capsys, "--sample", "3000", "--instances", "7")
    assert lines[0] == "sample of 3,000 rows in 2 batches, one instance of each subquery"
    assert lines[1].split() == ["subquery", "tuples", "in", "us", "per", "tuple", "share"]
    assert re.fullmatch(r"  minutes +3,000 +[\d,.]+ +\d+%", lines[2])
    assert re.fullmatch(r"  aggregate2 +[\d,]+ +[\d,.]+ +\d+%", lines[3])
    assert sum(int(line.split()[-1].rstrip("%")) for line in lines[2:4]) in (99, 100, 101)
    assert lines[4] == "subqueries that follow each other run in turn, so each can use all cores"
    assert lines[5] == "proposed: 7 instances"
    command = commanded(lines)
    assert command[:5] == ["tidegate", "run", "q.sql", "--master", "local[8]"]
    instances = dict(text.split("=") for text in command[6::2])
    assert set(command[5::2]) == {"--instances"}
    assert set(instances) == {"minutes", "aggregate2"}
    assert sum(map(int, instances.values())) == 7
    assert invoke([*command[1:], "--master", "none", "--out", "o"]) == 0


def commanded(lines: list[str]) -> list[str]:
    """The command that is proposed, however this process was started."""
    words = shlex.split(lines[-1])
    return ["tidegate", *words[words.index("run") :]]


@pytest.mark.parametrize("cores", [2, 3])
def test_more_instances_than_cores_are_never_proposed(
    cores: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = planned(capsys, "--instances", "40", cores=cores)
    assert lines[-3] == f"more instances of a subquery than the {cores} cores do not help"
    counts = [int(word.split("=")[1]) for word in commanded(lines)[6::2]]
    assert max(counts) == cores
    assert lines[-2] == f"proposed: {sum(counts)} instances"


def test_more_instances_than_pay_are_never_proposed() -> None:
    """A quarter is serial: with 5 instances each brings half of what the first does."""
    found = SpeedUp(0.5, 1.5)
    assert bounded_by(found, [16, 3], 16) == [5, 3]
    assert bounded_by(found, [16, 3], 4) == [4, 3]
    assert bounded_by(SpeedUp(0.0, 1.0), [16, 3], None) == [16, 3]
    assert limits(found, 1, 16, capped=True) == [
        "25% of a batch of 1,000,000 rows is serial: more instances are at most 4.0 times as fast",
        "more than 5 instances of a subquery do not pay",
    ]
    assert limits(SpeedUp(0.0, 1.0), 1, 2, capped=True) == [
        "more instances of a subquery than the 2 cores do not help"
    ]


def test_a_plan_says_how_much_is_serial(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(SQL.replace("rows=4000", "rows=40000"))
    lines = planned(capsys, "--sample", "40000")
    (line,) = [one for one in lines if "is serial" in one]
    assert re.fullmatch(
        r"[\d.]+% of a batch of 1,000,000 rows is serial: "
        r"more instances are at most [\d,.]+ times as fast",
        line,
    )


def test_one_process_needs_one_instance(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "q.sql", "--master", "none", "--instances", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3] == "more instances of a subquery than the 1 core do not help"
    assert lines[-1].endswith("--instances minutes=1 --instances aggregate2=1")


def test_the_command_repeats_what_the_plan_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    uri = "calls=generator:calls?rows=900&rate=50"
    given = ["--stream", uri, "--time", "calls=ts", "--strategy", "operator-cloud"]
    command = commanded(planned(capsys, *given, "--instances", "2"))
    assert command[3:9] == ["--stream", uri, "--time", "calls=ts", "--master", "local[8]"]
    assert command[9:11] == ["--strategy", "operator-cloud"]


def test_several_outputs_need_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.sql").write_text(
        "CREATE STREAM calls FROM 'generator:calls?rows=500' TIME ts;"
        "INSERT INTO a SELECT COUNT(*) AS n FROM calls [RANGE 1 SECOND];"
        "INSERT INTO b SELECT src FROM calls WHERE district = 3"
    )
    command = commanded(planned(capsys, "--instances", "2"))
    assert command[5:7] == ["--out", "results"]
    assert invoke([*command[1:], "--master", "none"]) == 0
    assert sorted(p.name for p in Path("results").iterdir()) == ["a", "b"]


def test_more_instances_than_buckets_ask_for_more_buckets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("q.sql").write_text(
        "CREATE STREAM calls FROM 'generator:calls?rows=500' TIME ts;"
        "SELECT COUNT(*) AS n FROM calls [RANGE 1 SECOND]"
    )
    lines = planned(capsys, "--instances", "100", cores=128)
    assert lines[-1].endswith("--buckets 128 --instances aggregate=100")


def test_query_cloud_has_one_number(capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(capsys, "--instances", "1", "--strategy", "query-cloud")
    assert lines[-2] == "proposed: 1 instance"
    assert lines[-1].endswith("--strategy query-cloud --instances 1")


def test_a_sample_that_does_not_reach_a_subquery_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = planned(capsys, "--sample", "20")
    assert lines[3].split()[:3] == ["aggregate2", "0", "-"]
    assert lines[4] == "  no tuple came to aggregate2: a larger --sample says more"
    assert lines[6].startswith("proposed: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--instances", "1"],
            "--instances: must be at least one for each of the 2 subqueries; got 1. Give more, or "
            "--strategy query-cloud, which has them all on the same instances.",
        ),
        (["--instances", "0"], "--instances: must be at least 1; got 0."),
        (["--instances", "two"], "--instances: must be a whole number; got two."),
        (["--sample", "0"], "--sample: must be at least 1; got 0."),
        (
            ["--strategy", "all"],
            "--strategy: `tidegate plan` takes one of operator-set, query-cloud, operator-cloud; "
            "got all. `tidegate explain --strategy all` compares them.",
        ),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "q.sql", "--master", "none", *options]) == 2
    assert capsys.readouterr().err == f"tidegate: {message}\n"
