"""Calls with wrong arguments, between a method of the Python surface and what its user reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.errors import OptionError, likely

P = ParamSpec("P")
T = TypeVar("T")


def called_as(example: str, name: str | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Arguments that do not fit are told with an example of a call, and not by a TypeError.

    `name` is what users call the function by, where it is not its own name.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function, updated=())  # of a class its name and docstring, not its members
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                said = _unexpected(signature, kwargs) or str(error)
                raise _told(name or function.__name__, signature, said, example) from None
            return function(*args, **kwargs)

        return checked

    return decorate


def _unexpected(signature: inspect.Signature, named: Mapping[str, object]) -> str | None:
    """A misspelt name comes before what is missing because of it."""
    known = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return None
    strange = next((n for n in named if n not in signature.parameters), None)
    return strange and f"got an unexpected keyword argument '{strange}'"


def _told(name: str, signature: inspect.Signature, said: str, example: str) -> OptionError:
    """What `Signature.bind` says, in a sentence of ours."""
    word = said.partition("'")[2].partition("'")[0]
    remedy = f"Write for example {example}."
    if said.startswith("missing"):
        return OptionError(name, f"needs {word}", "none", remedy)
    if said.startswith("got an unexpected keyword"):
        return no_argument(name, word, [p for p in signature.parameters if p != "self"], example)
    if said.startswith("too many positional"):
        return OptionError(name, "takes fewer arguments without a name", "more", remedy)
    return OptionError(name, said, None, remedy)


def no_argument(name: str, word: str, known: Sequence[str], example: str) -> OptionError:
    """What to say of an argument by a name that the function `name` does not know."""
    remedy = f"{likely(word, known)} Write for example {example}.".strip()
    return OptionError(name, "has no argument of this name", word, remedy)
