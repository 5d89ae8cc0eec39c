"""Builders of function calls that keep every argument a user writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tidegate.sql.slot import unread


def whole(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """A builder of calls that loses no argument: where sqlglot's does, the call stays as written.

    An argument is lost if another one makes the same call, or if Spark gets the same text.
    """

    def built(arguments: list[exp.Expr], **given: Any) -> exp.Expr:
        try:
            call = build(arguments, **given)
        except (ValueError, LookupError, AttributeError):  # too few for the builder
            return exp.Anonymous(this=name, expressions=arguments)
        kept = {id(node) for node in call.walk()}
        changed = [at for at, argument in enumerate(arguments) if id(argument) not in kept]
        if any(_lost(build, call, arguments, at, given) for at in changed) or unread(call):
            return exp.Anonymous(this=name, expressions=arguments)
        return call

    return built


def _lost(
    build: Callable[..., exp.Expr],
    call: exp.Expr,
    arguments: list[exp.Expr],
    at: int,
    given: dict[str, Any],
) -> bool:
    others = [a.copy() for a in arguments]
    flag = isinstance(others[at], exp.Boolean)
    others[at] = exp.Boolean(this=not others[at].this) if flag else exp.column("another")
    try:
        return build(others, **given) == call
    except Exception:
        return False
