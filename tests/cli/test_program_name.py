"""How the command line is called, and that what it says to type next works from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tidegate.cli.main import COMMANDS, commands, invoke
from tidegate.cli.program_name import called_as, python
from tidegate.cli.show import SHOWS


def test_alone_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Usage: tidegate [OPTIONS] [COMMAND] [ARGS]...")
    assert "\n  demo " in said.out
    assert "..." not in said.out.partition("Commands:")[2]
    assert said.err == ""


def test_its_help_needs_no_engine() -> None:
    code = (
        "import sys; from tidegate.cli.main import invoke; assert invoke(['--help']) == 0; "
        "assert not {'sqlglot', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules), sys.modules"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in said.stdout


def test_each_command_that_is_listed_is_there() -> None:
    context = click.Context(commands)
    for name in commands.list_commands(context):
        found = commands.get_command(context, name)
        assert found is not None
        assert found.name == name


def test_it_is_a_module_too() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tidegate", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("tidegate, version ")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command in an environment of its own, and nothing on the PATH."""
    made = tmp_path / "my venv" / "bin" / "tidegate"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return made


def test_on_the_path_its_name_is_enough(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(command.parent))
    assert called_as(str(command)) == "tidegate"


def test_else_it_is_called_by_the_way_to_it(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called_as("my venv/bin/tidegate") == "'my venv/bin/tidegate'"
    assert called_as(str(command)) == "'my venv/bin/tidegate'"
    monkeypatch.chdir(command.parent)
    assert called_as("./tidegate") == "./tidegate"
    monkeypatch.chdir("/usr")
    assert called_as(str(command)) == f"'{command}'"


def test_another_command_of_the_name_is_not_meant(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "tidegate").write_text("#!/bin/sh\n")
    (other / "tidegate").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert called_as(str(command)) == "'my venv/bin/tidegate'"


def test_a_module_is_called_as_one(command: Path) -> None:
    assert called_as("/somewhere/tidegate/__main__.py") == f"{python()} -m tidegate"
    assert python().endswith(Path(sys.executable).name)
    assert os.sep in python()


@pytest.mark.parametrize("name", SHOWS)
def test_what_to_try_next_names_the_query(name: str) -> None:
    title, *lines = SHOWS[name].then.splitlines()
    assert title == "What to try next:"
    commands = [line.strip() for line in lines if line.startswith("    ")]
    assert len(commands) >= 3
    assert all(name in command for command in commands)
    assert max(map(len, lines)) <= 120


def test_what_to_try_next_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands after the demo, in the folder that it was started in."""
    monkeypatch.chdir(tmp_path)
    said = SHOWS["taxi"].then.splitlines()
    commands = [line.strip() for line in said if line.startswith("    ")]
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands[:2])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "aggregate over [RANGE 15 minutes SLIDE 5 minutes] by route" in done.stdout
