"""The page on comparing queries: its command prints what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import Command, File, agrees, run, steps


def test_the_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps("docs/compare.md")
    monkeypatch.chdir(tmp_path)
    for file in found:
        if isinstance(file, File):
            Path(file.name).write_text(file.text)
    (command,) = (step for step in found if isinstance(step, Command))
    printed = run(command)
    assert agrees(command, printed), printed
