"""The reference pages are what the code says, and nothing of the code is missing."""

from __future__ import annotations

import re
from pathlib import Path

import click
from tools import reference
from tools.generated import stale

from tests.docs.block import ROOT
from tidegate.cli.main import commands
from tidegate.driver.metric.registry import FAMILIES
from tidegate.operate.aggregate.registry import sql_names
from tidegate.query.clause.registry import CLAUSES
from tidegate.query.window.registry import WINDOWS

FOLDER = ROOT / "docs" / "reference"


def text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_the_pages_are_what_the_code_says() -> None:
    assert stale(reference.made) == [], "run `make reference`"


def test_a_page_that_differs_is_named(tmp_path: Path) -> None:
    (tmp_path / "same.md").write_text("same", encoding="utf-8")
    texts = {tmp_path / name: "same" for name in ("same.md", "missing.md")}
    assert stale(lambda: texts) == ["missing.md"]


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


def test_every_aggregate_of_sql_is_there() -> None:
    calls = re.findall(r"`([A-Z_]+)\(", text("aggregates"))
    assert sorted({*calls}) == sorted(sql_names())


def test_every_variable_of_the_environment_has_a_meaning() -> None:
    found = reference.variables()
    assert len(found) >= 7
    assert [name for name, meaning in found if not meaning] == []


def test_every_option_of_start_has_a_meaning() -> None:
    rows = reference.start_rows()
    assert [name for name, meaning in rows if len(meaning.split()) < 4] == []
    told = {name.strip("`").partition("=")[0]: meaning for name, meaning in rows}
    assert "step" in told["observer"]
    assert {*reference.start_meanings()} <= {*told}, "its docstring names an option it has not"
    assert all(f"| `{name}=" in text("settings") for name in told)
