"""The reference pages are what the code says, and nothing of the code is missing."""

from __future__ import annotations

import re

import click
import pytest
from tools import reference

from tests.docs.block import ROOT
from tidegate.cli.main import commands
from tidegate.driver.metric.registry import FAMILIES
from tidegate.query.clause.registry import CLAUSES
from tidegate.query.window.registry import WINDOWS

FOLDER = ROOT / "docs" / "reference"


def text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_the_pages_are_what_the_code_says() -> None:
    assert reference.stale() == [], "run `make reference`"


def test_a_page_that_differs_is_named(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    assert reference.stale() == [*reference.PAGES]


def test_every_option_of_every_command_is_there() -> None:
    shared, *sections = re.split(r"^## tidegate", text("commands"), flags=re.MULTILINE)
    pages = {page.splitlines()[0].strip(): page for page in sections}
    counted = 0
    for name in commands.list_commands(click.Context(commands)):
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert f"`{parameter.opts[0]}" in pages[name], (name, parameter.opts)
                counted += 1
    assert counted > 150
    assert "`--stream NAME=URI`" in shared


def test_every_clause_window_and_metric_is_there() -> None:
    clauses, metrics = text("clauses"), text("metrics")
    for word, made in {**WINDOWS, **CLAUSES}.items():
        assert word in clauses
        for part in made.parts:
            assert part.word in clauses
    named = re.findall(r"^\| `(tidegate_\w+)`", metrics, re.MULTILINE)
    assert named == [family.series_name for family in FAMILIES]
