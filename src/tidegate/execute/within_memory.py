"""Turns a lack of memory into an error that tells the loop to cut smaller batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.errors import MemoryExceededError, TaskError


@contextmanager
def within_memory(where: str) -> Iterator[None]:
    """Raise a MemoryExceededError if memory runs out, in our code or in the user's.

    NumPy's and Arrow's errors are subclasses of MemoryError.
    """
    try:
        yield
    except MemoryError as error:
        raise exceeded(where, error) from error
    except TaskError as error:
        if not isinstance(error.__cause__, MemoryError):
            raise
        raise exceeded(where, error.__cause__) from error


def exceeded(where: str, error: BaseException) -> MemoryExceededError:
    """The error for work that does not fit into memory."""
    return MemoryExceededError(
        where,
        "must fit into memory",
        str(error) or "none that is free",
        "Raise --memory-limit where there is more, lower --batch-rows, ask for more --instances, "
        "or shorten the windows of the query. What is committed stays; run again to continue.",
    )
