"""The page on reading files: its commands print what it shows, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.block import ROOT
from tests.docs.test_commands import follow
from tidegate.source.registry import FORMATS
from tidegate.source.subscription import OPTIONS

PAGE = "docs/files.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def test_the_page_and_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(PAGE, on_spark=False) == 5
    (program,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    capsys.readouterr()
    exec(compile(program, PAGE, "exec"), {})
    assert "'zip', 'amount', 'at', 'day'" in capsys.readouterr().out


def test_all_options_and_formats_are_there() -> None:
    table = TEXT.split("## Options")[1].split("## Formats")[0]
    assert [name for name in OPTIONS if f"`{name}`" not in table] == []
    formats = TEXT.split("## Formats")[1].split("## Folders")[0]
    assert all(f"`{ending}`" in formats for ending in FORMATS)
