"""The page on proof: its commands print what it shows, and its Python needs what there is."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tidegate as tg
from tests.docs.block import ROOT
from tests.docs.console import Command, File, agrees, run, steps


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps("docs/proof.md")
    monkeypatch.chdir(tmp_path)
    for file in (step for step in found if isinstance(step, File)):
        Path(file.name).write_text(file.text)
    commands = [step for step in found if isinstance(step, Command)]
    assert [c.text.split()[1] for c in commands] == ["run", "replay", "replay", "state"]
    for command in commands:
        printed = run(command)
        assert agrees(command, printed), printed


def test_the_options_that_the_page_names_are_there() -> None:
    page = (ROOT / "docs/proof.md").read_text(encoding="utf-8")
    assert 'session.replay("ckpt", ' in page
    assert {"outputs", "batch", "out"} <= set(inspect.signature(tg.Session.replay).parameters)
