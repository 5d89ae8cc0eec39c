"""The page on why a row is there: its commands print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import File, agrees, run, steps


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for step in steps("docs/why.md"):
        if isinstance(step, File):
            Path(step.name).write_text(step.text)
        else:
            printed = run(step)
            assert agrees(step, printed), printed
            ran += 1
    assert ran == 2
