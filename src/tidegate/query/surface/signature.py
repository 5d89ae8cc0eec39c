"""Reports wrong arguments with an example of a call, instead of a TypeError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.errors import OptionError, likely

P = ParamSpec("P")
T = TypeVar("T")


def called_as(example: str, name: str | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorates a function so that wrong arguments raise OptionError with an example of a call.

    `name` is the name that users call it by, if it is not the function's own.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function, updated=())  # of a class its name and docstring, not its members
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                said = _unexpected(signature, kwargs) or str(error)
                raise _argument_error(name or function.__name__, signature, said, example) from None
            return function(*args, **kwargs)

        return checked

    return decorate


def _unexpected(signature: inspect.Signature, named: Mapping[str, object]) -> str | None:
    """An unknown argument's name: it is reported before the missing one it was meant for."""
    known = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return None
    strange = next((n for n in named if n not in signature.parameters), None)
    return strange and f"got an unexpected keyword argument '{strange}'"


def _argument_error(
    name: str, signature: inspect.Signature, said: str, example: str
) -> OptionError:
    """Translates the text of `Signature.bind` into our error."""
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
    """The error for a keyword argument that a function does not have."""
    remedy = f"{likely(word, known)} Write for example {example}.".strip()
    return OptionError(name, "has no argument of this name", word, remedy)
