"""Secrets in the environment of a run are in nothing that it leaves, says or sends."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from urllib.request import urlopen

import pytest

import tidegate as tg
from tests.lineage.receiver import Server
from tests.secrets.planted import PLANTED, search
from tidegate.cli.main import invoke

SQL = """
CREATE STREAM rides FROM 'in' TIME ts;
SELECT zone, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY zone
"""
EVERY = list(PLANTED.values())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All secrets at once, beside a folder for the run."""
    hidden, run = tmp_path / "hidden", tmp_path / "run"
    hidden.mkdir()
    (run / "in").mkdir(parents=True)
    for planted in EVERY:
        planted.plant(monkeypatch, hidden)
    monkeypatch.chdir(run)
    Path("in/a.csv").write_text("ts,zone\n2024-01-01T00:00:01Z,a\n2024-01-01T00:00:12Z,b\nx,c\n")
    Path("q.sql").write_text(SQL)
    return run


def test_a_run_leaves_and_says_none_of_them(
    folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    caplog.set_level(logging.DEBUG, "tidegate")
    run = "run q.sql --master none --out out --checkpoint state --available-now --log debug".split()
    run += ["--sign", str(folder.parent / "hidden/signing-key-1.pem")]
    try:
        for words in (
            ["explain", "q.sql"],
            [*run, "--summary", "s.json", "--lineage", server.url],
            [*run, "--lineage", "l.jsonl", "--log-format", "json"],
            ["state", "state"],
            ["state", "state", "--json"],
        ):
            assert invoke(words) == 0
    finally:
        server.close()
    said = capfd.readouterr()
    bodies = [json.dumps(event) for _, _, event in server.got]
    assert search([folder], [said.out, said.err, caplog.text, *bodies], EVERY) == []
    assert list(folder.glob("state/chain/*.json"))  # it has signed
    keys = {key for _, key, _ in server.got}
    assert keys == {f"Bearer {PLANTED['lineage-file'].value}"}  # it was planted where it is used


def test_a_query_of_a_program_tells_none_of_them(folder: Path) -> None:
    stream = tg.Session(master="none").sql(SQL)
    query = stream.start(
        sink="out", checkpoint="state", follow=True, lineage="l.jsonl", dashboard=True
    )
    try:
        with urlopen(str(query.dashboard) + "metrics") as metrics:
            told = metrics.read().decode()
        assert "tidegate_query_info" in told
        texts = [told, json.dumps(query.status(), default=str), repr(query), stream.explain()]
    finally:
        texts.append(query.stop().text())
    assert search([folder], texts, EVERY) == []


def test_a_failure_tells_none_of_them(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Servers that are not there, and keys that somebody has written into a URI."""
    secret = PLANTED["lineage"].value.replace("/", "%2F")
    words = ["run", "q.sql", "--master", "none"]
    for more in (
        ["--out", f"s3://key:{secret}@bucket/out"],
        ["--out", f"kafka://me:{secret}@host:1/topic"],
        ["--out", f"postgresql://me:{secret}@host:1/db?table=t"],
        ["--out", f"delta+s3://key:{secret}@bucket/t"],
        ["--out", "out", "--checkpoint", f"abfs://box:{secret}@acc.dfs.core.windows.net/a"],
        ["--out", "out", "--stream", f"rides=kafka://me:{secret}@host:1/topic"],
        ["--out", "out", "--stream", f"rides=postgresql://me:{secret}@host:1/db?table=t"],
        ["--out", "out", "--lineage", f"http://host:1/?api_key={secret}"],
        ["--out", "out", "--checkpoint", "s3://b/c?scheme=http&endpoint_override=127.0.0.1:1"],
    ):
        assert invoke([*words, *more]) == 2
    said = capfd.readouterr().err
    assert said.count("a URI must be without keys and passwords") == 8
    assert search([folder], [said], EVERY) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    planted = PLANTED["s3"]
    place = tmp_path / "state"
    place.mkdir()
    (place / "clean").write_text("nothing")
    assert search([place], ["nothing"], EVERY) == []
    packed = base64.b64encode(b"key=" + planted.value.encode() + b";")
    for number, form in enumerate((planted.value.encode(), packed)):
        (place / str(number)).write_bytes(b"\0" + form + b"\0")
    found = search([place], [f"a log of {planted.value}"], EVERY)
    assert [where.partition(" in ")[0] for where in found] == ["s3", "s3", "s3"]
    with pytest.raises(AssertionError, match="nothing to search"):
        search([tmp_path / "none"], [], EVERY)
