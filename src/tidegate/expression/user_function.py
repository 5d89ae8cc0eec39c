"""UserFunction: a user's Python function over whole columns, which expressions call.

In a tree it is the first argument of a call, so that it travels with the plan.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa

USER = "user"
"""The operation name of calls of users' functions."""


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction:
    """A function from one Arrow array per argument to an array of the same length.

    `takes` are the types that arguments are cast to; None leaves them. Functions with the same name
    and the same place in a program are equal, so that a plan is the same in every process.
    """

    name: str
    call: Callable[..., Any]
    returns: pa.DataType
    takes: tuple[pa.DataType, ...] | None = None

    @property
    def place(self) -> str:
        """The function's module and qualified name, which identify it in a checkpoint."""
        return f"{self.call.__module__}.{self.call.__qualname__}"

    @property
    def where(self) -> str:
        """The function with its file and line, for messages."""
        code = getattr(inspect.unwrap(self.call), "__code__", None)
        return f"{self.name} ({code.co_filename}:{code.co_firstlineno})" if code else self.name

    @property
    def counts(self) -> tuple[int, int | None]:
        """The smallest and the largest number of arguments; None for no limit."""
        least, most = 0, 0
        for slot in inspect.signature(self.call).parameters.values():
            if slot.kind == slot.VAR_POSITIONAL:
                return max(least, 1), None
            if slot.kind in (slot.POSITIONAL_ONLY, slot.POSITIONAL_OR_KEYWORD):
                least, most = least + (slot.default is slot.empty), most + 1
        return least, most

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserFunction):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash((self.name, self.place))

    def __repr__(self) -> str:
        return f"<function {self.name} of {self.place}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # A module that has it is imported where it is needed; else cloudpickle takes it by value.
        if _found(self.call.__module__, self.call.__qualname__) is self:
            return _imported, (self.call.__module__, self.call.__qualname__)
        return _made, (type(self), self.name, self.call, self.returns, self.takes)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.name, self.place, self.returns, self.takes


def _found(module: str, name: str) -> object:
    """The object that a name of an imported module refers to now."""
    if module == "__main__" or module not in sys.modules or "<" in name:
        return None
    held: object = sys.modules[module]
    for part in name.split("."):
        held = getattr(held, part, None)
    return held


def _imported(module: str, name: str) -> object:
    held: object = import_module(module)
    for part in name.split("."):
        held = getattr(held, part)
    return held


def _made(
    kind: type[UserFunction],
    name: str,
    call: Callable[..., Any],
    returns: pa.DataType,
    takes: tuple[pa.DataType, ...] | None,
) -> UserFunction:
    return kind(name, call, returns, takes)
