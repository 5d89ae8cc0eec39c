"""`tidegate demo`: each of its queries, watched or not, and to keep."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.scene import console
from tidegate.cli import hashtags
from tidegate.cli.main import invoke
from tidegate.cli.show import SHOWS, Show, run_show
from tidegate.session.place import Place
from tidegate.session.session import Session
from tidegate.sink.memory import MemorySink
from tidegate.source.registry import open_uri
from tidegate.testing import ManualClock

ROWS = {"taxi": 600_000, "calls": 200_000, "trades": 80_000, "hashtags": 120_000}
FEWER = hashtags.TWEETS.replace("rows=120000&rate=40", "rows=20000&rate=10")


def shorter(show: Show, monkeypatch: pytest.MonkeyPatch) -> Show:
    """As many batches as in the real one, with a tenth of the rows in each."""
    if show.program is not None:
        monkeypatch.setattr(hashtags, "TWEETS", FEWER)
        return replace(show, batch_rows=500)
    rows = ROWS[show.name]
    text = show.text.replace(f"rows={rows}", f"rows={rows // 10}")
    return replace(show, text=text, batch_rows=show.batch_rows // 10)


@pytest.mark.parametrize("name", SHOWS)
def test_it_takes_its_time_before_a_person(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = ManualClock(), console(100, 40)
    summary = run_show(shorter(SHOWS[name], monkeypatch), Place("none"), terminal, clock)
    assert summary.finished
    assert summary.counters["rows_out"] > 10
    assert 15 <= clock.now() <= 25
    drawn = terminal.file.getvalue()
    assert "2 → 4 at batch 12" in drawn
    assert "4 → 1 at batch 26" in drawn
    assert "finished" in drawn


def test_it_runs_through_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["demo", "taxi", "--master", "none"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("CREATE STREAM rides")
    assert said.out.count("Z,2013-01-01 ") == 220
    assert "What to try next" in said.out
    assert "epoch 1: 4 instances from batch 12" in said.err
    assert "epoch 2: 1 instance from batch 26" in said.err
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize("name", [s.name for s in SHOWS.values() if s.program is None])
def test_its_query_can_be_kept(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["demo", name, "--sql"]) == 0
    monkeypatch.chdir(tmp_path)
    Path("kept.sql").write_text(capsys.readouterr().out)
    assert invoke(["explain", "kept.sql", "--master", "none"]) == 0


def test_its_program_can_be_kept_and_gives_the_rows_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["demo", "hashtags", "--program"]) == 0
    program = capsys.readouterr().out
    show = shorter(SHOWS["hashtags"], monkeypatch)
    kept = program.replace("rows=120000&rate=40", "rows=20000&rate=10")
    (tmp_path / "kept.py").write_text(kept)
    done = subprocess.run(
        [sys.executable, "kept.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") > 50
    assert run_show(show, Place("none"), None).finished
    assert capsys.readouterr().out == done.stdout


def test_its_sequences_are_those_of_a_plain_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per hashtag, the words of all its tweets one after the other, gone through once."""
    monkeypatch.setattr(hashtags, "TWEETS", FEWER)
    sink = MemorySink()
    found = hashtags.sequences(Session(master="none"))
    found.start(sink=sink, instances=2, batch_rows=3_000, switches={2: 4, 4: 1}).wait()
    rows = sink.table().to_pylist()
    (source,) = open_uri(FEWER, "tweets", "ts", False).discover()
    tweets = source.reader(0, source.extend(20_000)).read(["text", "hashtags"]).table.to_pylist()
    words: dict[str, list[str]] = {}
    for tweet in tweets:
        for hashtag in tweet["hashtags"].split():
            words.setdefault(hashtag, []).extend(tweet["text"].split())
    times = {h: n for h, said in words.items() if (n := in_order(said, hashtags.WORDS))}
    assert {r["hashtag"]: r["times"] for r in rows} == times  # the last row has the greatest
    assert len(rows) == sum(times.values()) > 500


def in_order(said: list[str], words: tuple[str, ...]) -> int:
    """How often the words come in their order, each after the other, with any between them."""
    at, times = 0, 0
    while True:
        for word in words:
            if word not in said[at:]:
                return times
            at = said.index(word, at) + 1
        times += 1
