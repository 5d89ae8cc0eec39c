"""Limits how deep expressions and queries are nested, so that Python's stack is enough.

Chains of operators may be of any length: what goes through them does so in loops. Parentheses,
calls and subqueries are nested, and there sqlglot's parser and its generator recurse, some thirty
calls of Python functions for a level. The interpreter's limit on these can be raised for as long as
a query is planned. Its limit on calls that pass through C cannot: Python 3.12 has room for 750, and
a function call in SQL takes three of them. The bound leaves a fifth of that to the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from tidegate.errors import QueryError

MOST_NESTED = 200
"""Levels of parentheses, calls, CASE and subqueries inside each other, on every Python."""

REQUIREMENT = f"expressions and queries may be nested {MOST_NESTED} levels deep"
REMEDY = "Write it flat: an IN list, a CASE with more branches, or columns of a stream before it."

_CALLS = 16_000

P = ParamSpec("P")
T = TypeVar("T")


class _Room:
    """The raised limit, shared by all threads that plan: the last one to end puts it back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _CALLS))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    sys.setrecursionlimit(self._before)


_room = _Room()


def nested(function: Callable[P, T]) -> Callable[P, T]:
    """A function that plans, with room for the deepest query; a deeper one is a QueryError."""

    @wraps(function)
    def planned(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with _room():
                return function(*args, **kwargs)
        except RecursionError:
            raise too_deep("query", "more") from None

    return planned


def too_deep(where: str, got: str) -> QueryError:
    """What to say of an expression or a query that is nested too deeply."""
    return QueryError(where, REQUIREMENT, got, REMEDY)
