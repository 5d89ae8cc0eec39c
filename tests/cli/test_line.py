"""Lines on standard error as JSON: every line is one object, whoever wrote it."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.line import (
    JSON,
    LogHandler,
    _JsonFormatter,
    lines_as_text,
    log_to_stderr,
    say,
    use,
)
from tidegate.cli.main import invoke

RIDES = "ts,route\n2024-01-01T00:00:01Z,a\n2024-01-01T00:00:09Z,b\n2024-01-01T00:00:02Z,b\nx,a\n"
RUN = ["run", "-e", "SELECT route FROM rides", "--stream", "rides=rides.csv", "--master", "none"]


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text(RIDES)


def test_a_run_says_all_in_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*RUN, "--log-format", "json"]) == 0
    shown = capsys.readouterr()
    late, rejected, summary = objects(shown.err)
    assert late["message"].startswith("late tuple of rides: {")
    assert rejected["message"].startswith("rejected tuple: {")
    assert late["logger"] == rejected["logger"] == "stderr"
    assert summary["message"] == "finished: 4 rows in, 2 out, 1 late, 1 rejected"
    assert summary["summary"]["rows_late"] == 1
    assert shown.out.splitlines()[1:] == [
        '2024-01-01 00:00:01.000000Z,"a"',
        '2024-01-01 00:00:09.000000Z,"b"',
    ]


@pytest.mark.parametrize("words", [[*RUN, "--instances", "x"], [*RUN, "--time", "rides=when"]])
def test_a_mistake_has_its_parts(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*words, "--log-format", "json"]) == 2
    (line,) = objects(capsys.readouterr().err)
    assert line["level"] == "error"
    parts = line["error"]
    assert line["message"].startswith(f"{parts['where']}: {parts['requirement']}; got")


def test_the_next_command_speaks_to_people_again(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stderr
    assert invoke([*RUN, "--log-format", "json", "--instances", "x"]) == 2
    assert invoke([*RUN, "--instances", "x"]) == 2
    assert sys.stderr is before
    _, text = capsys.readouterr().err.splitlines()
    assert text.startswith("tidegate: --instances: ")


def test_lines_of_others_are_objects_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in pieces or several at once; a record of the log keeps its level and traceback."""
    seen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", seen)
    handler = LogHandler()
    handler.setFormatter(_JsonFormatter())
    log = logging.getLogger("tidegate.test")
    log.addHandler(handler)
    logging.getLogger("py.warnings").addHandler(handler)
    try:
        with lines_as_text():
            use(JSON)
            sys.stderr.write("one\ntw")
            sys.stderr.write("o\n\n")
            log.warning("a %s", "{")
            try:
                raise ValueError("no\nsuch")
            except ValueError:
                log.exception("failed")
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("old", stacklevel=1)
            say("done", kept=[1])
    finally:
        log.removeHandler(handler)
        logging.getLogger("py.warnings").removeHandler(handler)
    told = [(o["logger"], o["level"], o["message"]) for o in objects(seen.getvalue())]
    assert told[:4] == [
        ("stderr", "info", "one"),
        ("stderr", "info", "two"),
        ("tidegate.test", "warning", "a {"),
        ("tidegate.test", "error", "failed"),
    ]
    warned, last = told[4:]
    assert warned[:2] == ("py.warnings", "warning")
    assert "UserWarning: old" in warned[2]
    assert last == ("tidegate", "info", "done")
    lines = objects(seen.getvalue())
    assert "ValueError: no\nsuch" in lines[3]["traceback"]
    assert lines[-1]["kept"] == [1]


def test_debug_does_not_tell_the_token_of_the_gateway_to_the_jvm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Py4J writes it with its first call."""
    root, theirs = logging.getLogger(), logging.getLogger("py4j")
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(theirs, "level", logging.NOTSET)
    log_to_stderr("debug")
    assert logging.getLogger("tidegate.driver").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("py4j.clientserver").isEnabledFor(logging.DEBUG)
    logging.getLogger("py4j.clientserver").manager._clear_cache()
