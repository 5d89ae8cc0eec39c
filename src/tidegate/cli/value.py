"""Kinds of option values, between the words of a shell and what commands take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tidegate.errors import OptionError, near
from tidegate.memory import bytes_of


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A whole number."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            raise OptionError(_where(param, ctx), "must be a whole number", value) from None


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes, with a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return bytes_of(value, _where(param, ctx))


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One word of a few, written as they are; `also` are others that are taken for one of them."""

    def __init__(self, choices: Sequence[str], also: Mapping[str, str] | None = None) -> None:
        super().__init__(choices)
        self._also = also or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        value = self._also.get(value, value)
        if value not in self.choices:
            words = [str(c) for c in self.choices]
            raise OptionError(_where(param, ctx), "must be a known word", value, near(value, words))
        return str(value)


def _where(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """An option by its name, an argument by its command's."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return ctx.info_name or "tidegate" if ctx is not None else "tidegate"


def in_shape(mistake: click.ClickException) -> OptionError:
    """What click complains about, as one of Tidegate's own errors."""
    ctx = mistake.ctx if isinstance(mistake, click.UsageError) else None
    command = ctx.command_path if ctx is not None else "tidegate"
    where = command.removeprefix("tidegate").strip() or "command line"
    remedy = f"`{command} --help` lists what there is."
    message = " ".join(mistake.format_message().split()).rstrip(".")
    if isinstance(mistake, click.NoSuchOption) and ctx is not None:
        known = [name for p in ctx.command.get_params(ctx) for name in p.opts if name[:2] == "--"]
        name = mistake.option_name
        requirement = f"no option of `{command}` has this name"
        return OptionError(name, requirement, None, near(name, known, alike=0.75))
    if isinstance(mistake, click.BadOptionUsage):
        message = message.removeprefix(f"Option {mistake.option_name!r} ")
        return OptionError(mistake.option_name, message)
    if isinstance(mistake, click.MissingParameter) and mistake.param is not None:
        what = mistake.param.metavar or mistake.param.human_readable_name
        return OptionError(where, f"needs {what}", "none", remedy)
    return OptionError(where, message[:1].lower() + message[1:], None, remedy)
