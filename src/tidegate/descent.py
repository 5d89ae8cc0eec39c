"""Runs recursive functions over trees of any depth without using Python's stack.

A sum of thousands of terms is a tree thousands of levels deep. Write a function over it as a
generator: where it would call itself, it yields the call and is sent the result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

Step = Generator[Any, Any, T]
"""A call of a recursive function: yields the calls inside it and returns its result."""


def descend(first: Step[T]) -> T:
    """The result of a call. Exceptions propagate from call to call as usual."""
    stack: list[Step[Any]] = [first]
    result: Any = None
    failure: Exception | None = None
    while stack:
        try:
            if failure is None:
                called = stack[-1].send(result)
            else:
                thrown, failure = failure, None
                called = stack[-1].throw(thrown)
        except StopIteration as end:
            stack.pop()
            result = end.value
        except Exception as error:
            stack.pop()
            failure = error
        else:
            stack.append(called)
            result = None
    if failure is not None:
        raise failure
    final: T = result
    return final
