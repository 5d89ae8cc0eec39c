"""The page on comparing queries: its commands print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import Command, File, agrees, run, steps


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps("docs/compare.md")
    monkeypatch.chdir(tmp_path)
    for file in found:
        if isinstance(file, File):
            Path(file.name).write_text(file.text)
    commands = [step for step in found if isinstance(step, Command)]
    for command in commands:
        printed = run(command)
        assert agrees(command, printed), printed
    assert len(commands) == 7
