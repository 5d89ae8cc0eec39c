"""The page on the command line: its console blocks print what it shows."""

from __future__ import annotations

from tests.docs.console import Command, agrees, run, steps


def test_the_commands_of_the_page() -> None:
    commands = [step for step in steps("docs/cli.md") if isinstance(step, Command)]
    assert [command.text.split()[1] for command in commands] == ["simulate"]
    for command in commands:
        printed = run(command)
        assert agrees(command, printed), printed
