"""The policies that have names: a line for each, and how one is made of what a user writes."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from inspect import isfunction
from typing import Any

from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Policy
from tidegate.errors import OptionError, near
from tidegate.named_parameters import parameters_of

POLICIES: dict[str, str] = {
    "fixed": "tidegate.elastic.fixed:Fixed",
    "threshold": "tidegate.elastic.threshold:Threshold",
    "model": "tidegate.elastic.by_model:ByModel",
    "auto": "tidegate.elastic.auto.policy:ByTarget",
}
"""By name the class of a policy: a dataclass, whose fields are the parameters that a user gives."""

_EXAMPLE = "Write for example tg.policy.threshold(maximum=4)."


def of(asked: object, where: str = "policy") -> Policy:
    """A policy by what a user gives: an object, a name, or a name with parameters.

    The text `threshold?maximum=4&target=0.6` is `threshold(maximum=4, target=0.6)`.
    """
    if asked is None:
        return Fixed()
    if isinstance(asked, str):
        return _named(asked, where)
    if isinstance(asked, type) or not callable(getattr(asked, "decide", None)):
        # What makes a policy, and was not called.
        maker = asked.__name__ if isfunction(asked) or isinstance(asked, type) else None
        got = f"the class {maker}" if maker else repr(asked)
        remedy = f"Write {maker}(...)." if maker else _EXAMPLE
        raise OptionError(where, "must be a policy, or the name of one", got, remedy)
    name = getattr(asked, "name", None)
    if not isinstance(name, str) or not name:
        kind = type(asked).__name__
        raise OptionError(
            where, "needs a name, for the timeline of switches", f"{kind} without one"
        )
    policy: Policy = asked  # type: ignore[assignment]  # it has the two members of the protocol
    return policy


def _named(text: str, where: str) -> Policy:
    name = text.partition("?")[0]
    if name not in POLICIES:
        raise OptionError(where, "must be a known word", name, near(name, POLICIES))
    module, _, made = POLICIES[name].partition(":")
    make = getattr(import_module(module), made)
    known = {field.name: str(field.type) for field in fields(make)}
    found: dict[str, Any] = {}
    for key, value in parameters_of(text, where):
        if key not in known:
            raise OptionError(where, f"{name} has no parameter of this name", key, near(key, known))
        found[key] = value if known[key].startswith("str") else _number(value, key, where)
    policy: Policy = make(**found)
    return policy


def _number(text: str, name: str, where: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise OptionError(where, f"{name} must be a number", text)
