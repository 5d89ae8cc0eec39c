"""UserFunction: a Python function over whole columns that expressions call.

In a tree it stands as the first argument of a call, so that it travels with the plan.
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
"""The operation of calls of such functions."""


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction:
    """What an expression calls: given an Arrow array per argument, it returns one as long.

    `takes` are the types that arguments are cast to, None for whatever they are. Two functions are
    equal when they have one name and one place in a program, so that a plan is the same in every
    process.
    """

    name: str
    call: Callable[..., Any]
    returns: pa.DataType
    takes: tuple[pa.DataType, ...] | None = None

    @property
    def place(self) -> str:
        """The function by its module and name: what tells it from others in a checkpoint."""
        return f"{self.call.__module__}.{self.call.__qualname__}"

    @property
    def where(self) -> str:
        """The function with its file and line, for messages."""
        code = getattr(inspect.unwrap(self.call), "__code__", None)
        return f"{self.name} ({code.co_filename}:{code.co_firstlineno})" if code else self.name

    @property
    def counts(self) -> tuple[int, int | None]:
        """The least and the largest number of arguments; None for any."""
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
    """What a name of an importable module stands for now."""
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
