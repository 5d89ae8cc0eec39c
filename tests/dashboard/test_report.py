"""`tidegate report`: one page that holds a run's data, of checkpoints and of summaries."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.main import invoke

MOST_PAGE_BYTES = 300_000
ROWS = "ts,k,v\n" + "".join(
    f"2024-01-01T00:00:{i // 10:02d}.{i % 10}Z,k{i % 7},{i}\n" for i in range(600)
)
QUERY = """
CREATE STREAM s FROM 's.csv' TIME ts;
SELECT k, SUM(v) AS v FROM s [RANGE 5 SECONDS] GROUP BY k
"""
RUN = "run q.sql --master none --instances 2 --batch-rows 20 --out out --checkpoint ckpt"


class Parts(HTMLParser):
    """The scripts and styles of a page, its meta tags, and the names of all attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.kinds: list[str | None] = []
        self.policy = ""
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.attributes |= given.keys()
        self.links += [str(given[name]) for name in ("src", "href") if given.get(name)]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag in self.texts:
            self._inside = tag
            self.texts[tag].append("")
        if tag == "script":
            self.kinds.append(given.get("type"))

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text(ROWS)
    Path("q.sql").write_text(QUERY)
    assert invoke([*RUN.split(), "--summary", "sum.json"]) == 0
    return tmp_path


def parts(path: str = "report.html") -> Parts:
    found = Parts()
    found.feed(Path(path).read_text(encoding="utf-8"))
    return found


def data(found: Parts) -> Any:
    return json.loads(found.texts["script"][found.kinds.index("application/json")])


def test_a_report_has_every_batch_of_the_journal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert invoke(["report", "ckpt"]) == 0
    assert re.fullmatch(r"report.html: \d+ KiB\n", capsys.readouterr().out)
    found = data(parts())
    lines = Path("ckpt/journal/00000000.jsonl").read_text().splitlines()
    assert found["batches"]["0"] == [json.loads(line) for line in lines]
    assert len(lines) == 30
    status = found["status"]["0"]
    assert status == json.loads(Path("ckpt/journal/status.json").read_text())
    assert (status["state"], status["rows_in"]) == ("finished", 600)
    assert found["queries"] == [{"id": "0", "title": "ckpt", "state": "finished", "control": False}]


def test_a_report_needs_nothing_else_and_runs_only_what_was_shipped(run: Path) -> None:
    assert invoke(["report", "ckpt", "-o", "page.html"]) == 0
    found = parts("page.html")
    assert [link for link in found.links if not link.startswith(("#", "data:"))] == []
    assert "default-src 'none'" in found.policy
    ran = [t for t, kind in zip(found.texts["script"], found.kinds) if kind != "application/json"]
    assert len(ran) == 2
    for text in (*ran, *found.texts["style"]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in found.policy
    assert "import " not in re.sub(r"//.*", "", ran[1])


def test_older_batches_are_kept_without_their_steps(run: Path) -> None:
    journal = Path("ckpt/journal/00000000.jsonl")
    whole = json.loads(journal.read_text().splitlines()[3])
    journal.write_text("".join(json.dumps({**whole, "batch": n}) + "\n" for n in range(12_000)))
    assert invoke(["report", "ckpt"]) == 0
    batches = data(parts())["batches"]["0"]
    assert [batch["batch"] for batch in batches] == list(range(2_000, 12_000))
    assert sum("tasks" in batch for batch in batches) == 300
    assert batches[-300] == {**whole, "batch": 11_700}
    assert batches[0]["instances_of"] == {"aggregate": 2}
    assert batches[0]["serial_ms"] == pytest.approx(whole["ms"] - whole["driver_ms"]["operate"])


def test_a_summary_shows_what_it_has(run: Path) -> None:
    assert invoke(["report", "sum.json"]) == 0
    found = data(parts())
    assert found["batches"] == {"0": []}
    status = found["status"]["0"]
    assert (status["state"], status["rows_in"], status["batches"]) == ("finished", 600, 30)
    assert status["subqueries"] == {"aggregate": {"epoch": 0, "instances": 2}}


def test_nothing_in_the_data_ends_the_script(run: Path) -> None:
    status = Path("ckpt/journal/status.json")
    hostile = "</script><script>alert(1)</script><!--"
    status.write_text(json.dumps({**json.loads(status.read_text()), "state": f"failed: {hostile}"}))
    assert invoke(["report", "ckpt"]) == 0
    found = parts()
    assert data(found)["status"]["0"]["state"] == f"failed: {hostile}"
    assert len(found.kinds) == 3


def test_a_run_that_was_killed_has_ended_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text(ROWS)
    Path("q.sql").write_text(QUERY)
    command = [sys.executable, "-m", "tidegate", *RUN.split(), "--follow"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        status = Path("ckpt/journal/status.json")
        while not status.exists():
            assert process.poll() is None, process.stderr
            time.sleep(0.05)
        assert invoke(["report", "ckpt", "-o", "running.html"]) == 0
        process.send_signal(signal.SIGKILL)
    assert data(parts("running.html"))["status"]["0"]["state"] == "running"
    assert invoke(["report", "ckpt"]) == 0
    assert data(parts())["status"]["0"]["state"] == "ended without a word"


def test_the_page_is_small_and_has_no_handlers_in_its_text() -> None:
    page = files("tidegate.dashboard").joinpath("page")
    names = [file.name for file in page.iterdir() if file.is_file()]
    assert {"index.html", "style.css", "main.js", "uplot.js", "uplot.LICENSE"} <= set(names)
    assert sum(os.path.getsize(str(page.joinpath(name))) for name in names) < MOST_PAGE_BYTES
    found = Parts()
    found.feed(page.joinpath("index.html").read_text(encoding="utf-8"))
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    assert found.texts["style"] == []
    assert not any(text.strip() for text in found.texts["script"])
    own = [n for n in names if n.endswith(".js") and n != "uplot.js"]
    for name in own:
        text = page.joinpath(name).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
        ), name
    assert len(own) > 8
