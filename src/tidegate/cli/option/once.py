"""Refuses options that are given twice: of two values click would take the last, silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from tidegate.errors import OptionError


def refuse_repeats(command: click.Command) -> None:
    """Let a command, and those below it, refuse a repeated option that takes one value.

    Options declared `multiple` may be repeated, and so may what click only counts.
    """
    make_parser = command.make_parser

    def make(ctx: click.Context) -> Any:
        parser: Any = make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            found = parse(args)
            _check_once(found[2])
            return found

        parser.parse_args = parse_args
        return parser

    command.make_parser = make  # type: ignore[method-assign]
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        refuse_repeats(below)


def _check_once(given: Sequence[click.Parameter]) -> None:
    """Refuse repeats among parameters, which are in the order of the command line."""
    single = (p for p in given if isinstance(p, click.Option) and not p.multiple and not p.count)
    for option, count in Counter(single).items():
        if count > 1:
            times = "twice" if count == 2 else f"{count} times"
            got, remedy = f"it {times}", "Leave out all but one."
            name = next((n for n in option.opts if n[:2] == "--"), option.opts[0])
            raise OptionError(name, "must be given once", got, remedy)
