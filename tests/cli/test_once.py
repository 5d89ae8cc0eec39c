"""An option that takes one value is refused where it is given twice, in every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from tidegate.cli.main import COMMANDS, commands, invoke


def every_command() -> Iterator[tuple[list[str], click.Command]]:
    context = click.Context(commands)
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        yield [name], command
        if isinstance(command, click.Group):
            for below, inner in command.commands.items():
                yield [name, "ck", below], inner


def single_options() -> Iterator[tuple[list[str], str]]:
    for words, command in every_command():
        for option in command.params:
            if isinstance(option, click.Option) and not (option.multiple or option.is_eager):
                value = [] if option.is_flag else ["1"]
                yield words, " ".join([option.opts[0], *value])


def test_every_option_that_takes_one_value_is_refused_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = 0
    for words, option in single_options():
        assert invoke([*words, *option.split(), *option.split()]) == 2
        said = capsys.readouterr().err
        assert ": must be given once; got it twice" in said, (words, option)
        seen += 1
    assert seen > 100


def test_the_last_value_does_not_win(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["why", "ck", "--row", "5", "--row=7", "--row", "8"]) == 2
    said = capsys.readouterr().err
    assert "--row: must be given once; got it 3 times. Leave out all but one." in said


def test_options_that_are_meant_to_be_repeated_are(capsys: pytest.CaptureFixture[str]) -> None:
    """They come as far as the query, which is not there."""
    repeated = ["--stream", "a=x", "--stream", "b=y", "--conf", "a=b", "--conf", "c=d"]
    assert invoke(["run", "no.sql", *repeated]) == 2
    assert "given once" not in capsys.readouterr().err
