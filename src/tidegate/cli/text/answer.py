"""Prints what a command has found: text for people or, with `--json`, the facts as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from tidegate.cli.option.target import check_target
from tidegate.json_text import json_text

Command = TypeVar("Command", bound=Callable[..., Any])

JSON = "--json"
STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class CommandAnswer:
    """What a command has found: the data, and its text.

    With `aside` the text goes to standard error as a remark. `code` is the exit code.
    """

    facts: Any
    text: Callable[[], str]
    aside: bool = False
    code: int = 0


def answers(command: Callable[..., CommandAnswer]) -> Callable[..., None]:
    """Adds `--json` to a command and prints its answer."""

    @click.option(JSON, "as_json", is_flag=True, help="Print as JSON.")
    @wraps(command)
    def printed(*arguments: Any, as_json: bool, **options: Any) -> None:
        answer = command(*arguments, **options)
        if as_json:
            click.echo(json_text(answer.facts, indent=2))
        else:
            click.echo(answer.text(), err=answer.aside)
        if answer.code:
            click.get_current_context().exit(answer.code)

    return printed


def json_file_option(help_: str) -> Callable[[Any], Any]:
    """`--json FILE`, for commands whose facts other commands read; without a file they are printed.

    The text is printed unless the facts are.
    """
    return click.option(
        JSON,
        "json_file",
        is_flag=False,
        flag_value=STANDARD_OUTPUT,
        metavar="[FILE]",
        help=f"{help_}; without FILE, or with -, to standard output.",
    )


def check_json_file(name: str | None) -> None:
    """Raises for a file that cannot be written, before the command does its work."""
    if name is not None and name != STANDARD_OUTPUT:
        check_target(JSON, name)
