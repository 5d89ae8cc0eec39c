"""Types of option values: each parses a word or raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import click
from click.shell_completion import CompletionItem

from tidegate.calendar.microsecond import read_us
from tidegate.errors import OptionError, near
from tidegate.memory import bytes_of


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A whole number; `least` is the smallest one allowed, if any."""

    name = "whole number"

    def __init__(self, *, least: int | None = None) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise OptionError(_where(param, ctx), "must be a whole number", value) from None
        if self._least is not None and number < self._least:
            raise OptionError(_where(param, ctx), f"must be at least {self._least}", str(number))
        return number


class TimeText(click.ParamType):  # type: ignore[type-arg]
    """A time in ISO 8601, as microseconds since 1970; UTC if it has no zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return read_us(value)
        except ValueError:
            remedy = "Write for example 2024-01-31T12:00:00Z."
            raise OptionError(_where(param, ctx), "must be a time", value, remedy) from None


class Number(click.ParamType):  # type: ignore[type-arg]
    """A finite number with bounds: `above` is exclusive, `least` and `most` are inclusive."""

    name = "number"

    def __init__(
        self, *, above: float | None = None, least: float | None = None, most: float | None = None
    ) -> None:
        self._above, self._least, self._most = above, least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        where = _where(param, ctx)
        try:
            number = float(value)
        except ValueError:
            raise OptionError(where, "must be a number", value) from None
        if not isfinite(number):
            raise OptionError(where, "must be a finite number", value)
        inside = (
            (self._above is None or number > self._above)
            and (self._least is None or number >= self._least)
            and (self._most is None or number <= self._most)
        )
        if not inside:
            raise OptionError(where, f"must be {self._range()}", value)
        return number

    def _range(self) -> str:
        words = [] if self._above is None else [f"above {self._above:g}"]
        words += [] if self._least is None else [f"at least {self._least:g}"]
        words += [] if self._most is None else [f"at most {self._most:g}"]
        return " and ".join(words)


class PathText(click.ParamType):  # type: ignore[type-arg]
    """A path or URI, unchanged; shells complete file names."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class SizeType(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes, with a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return bytes_of(value, _where(param, ctx))


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of a few words, with exact spelling; `also` maps other words to them."""

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
    """The option's name; for an argument, its command's name."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return ctx.info_name or "tidegate" if ctx is not None else "tidegate"


def in_shape(mistake: click.ClickException) -> OptionError:
    """Click's complaint as a Tidegate error."""
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
    if message == "Missing command":
        return OptionError(where, "needs a command", "none", remedy)
    return OptionError(where, message[:1].lower() + message[1:], None, remedy)
