"""`tidegate run` with everything on an S3 server, as a person meets it: what it says, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.folder import contents
from tests.s3.server import Server
from tests.secrets.planted import PLANTED, search
from tidegate.cli.main import invoke

SQL = "SELECT k, COUNT(*) AS n FROM r [RANGE 10 SECONDS] GROUP BY k"
ROWS = "t,k\n2024-01-01T00:00:30,a\n2024-01-01T00:00:01,b\n2024-01-01T00:01:00,c\nnever,d\n"


@pytest.fixture
def options(server: Server, path: str, tmp_path: Path) -> list[str]:
    """A run with everything on the server; the keys are in the environment."""
    (server.folder / path / "in").mkdir(parents=True)
    (server.folder / path / "in" / "a.csv").write_text(ROWS)
    (tmp_path / "q.sql").write_text(SQL)
    uris = [server.uri(f"{path}/{name}") for name in ("in", "out", "c")]
    given = ["--stream", f"r={uris[0]}", "--time", "r=t", "--out", uris[1], "--checkpoint", uris[2]]
    return ["run", str(tmp_path / "q.sql"), "--master", "none", "--format", "csv", *given]


def test_what_is_said_names_places_and_no_keys(
    options: list[str], server: Server, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(options) == 0
    said = capsys.readouterr().err
    assert f"{path}/in/a.csv" in said
    assert f"late rows are in s3://bucket/{path}/out/_late" in said
    assert list(contents(server.folder / path / "out")) == [
        "_late/batch=00000000/r.csv",
        "_ledger/batch=00000000",
        "_rejected/batch=00000000/rejected.csv",
        "batch=00000000/part-00000.csv",
    ]
    (server.folder / path / "in" / "b.csv").write_text(ROWS)
    assert invoke(options) == 2  # its windows are closed
    said += capsys.readouterr().err
    assert f"got new input in s3://bucket/{path}/in/b.csv." in said
    assert invoke(["state", server.uri(f"{path}/c")]) == 0
    said += capsys.readouterr().out
    assert search([server.folder / path], [said], [PLANTED["s3"]]) == []


@pytest.mark.parametrize("which", ["--stream", "--out", "--checkpoint"])
def test_a_bucket_that_is_not_there_is_one_line(
    options: list[str], which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = options.index(which) + 1
    options[place] = options[place].replace("//bucket/", "//another/")
    assert invoke(options) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        "The specified bucket does not exist. Check the name of the bucket, and the endpoi" in said
    )
