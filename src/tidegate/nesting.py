"""Limits the nesting of expressions and queries to what Python's stack can hold.

Chains of operators may have any length, because code that walks them loops. Parentheses, calls and
subqueries nest, and there sqlglot's parser and generator recurse, some thirty Python calls per
level. Planning raises the interpreter's limit for these. The limit on calls that pass through C
cannot be raised: Python 3.12 has room for 750, and a function call in SQL takes three. The bound
leaves a fifth of that to the caller.
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
"""The most levels of parentheses, calls, CASE and subqueries, on every Python."""

REQUIREMENT = f"expressions and queries may be nested {MOST_NESTED} levels deep"
REMEDY = "Write it flat: an IN list, a CASE with more branches, or columns of a stream before it."

_CALLS = 16_000

P = ParamSpec("P")
T = TypeVar("T")


class _Room:
    """The raised recursion limit; the last planning thread to finish restores it."""

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
    """Gives a planning function room for the deepest query; a deeper one is a QueryError."""

    @wraps(function)
    def planned(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with _room():
                return function(*args, **kwargs)
        except RecursionError:
            raise too_deep("query", "more") from None

    return planned


def too_deep(where: str, got: str) -> QueryError:
    """The error for nesting that is too deep."""
    return QueryError(where, REQUIREMENT, got, REMEDY)
