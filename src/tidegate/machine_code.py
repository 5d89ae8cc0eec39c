"""Compiles the loops of kernels with Numba, and keeps the machine code on disk.

Importing this module imports Numba, which takes a third of a second: do so when there are rows for
a loop. Machine code is kept beside the source, or in the user's cache folder where that cannot be
written; compiling a loop takes about a second, loading it a few hundredths of one.
"""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, cast

import numba
from numba import types


def part(function: Callable[..., Any]) -> Any:
    """Part of a loop: compiled into it, and cached with it; so it stands in the same file."""
    return numba.njit(nogil=True)(function)


def compiled(signature: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop for arguments of these types, from disk if it is there.

    Loops of different types need different names: each has then an index of its own in the cache,
    and processes that compile at once write equal files, each by an atomic rename.
    """
    try:
        loop = numba.njit(signature, nogil=True, cache=True)(function)
    except (RuntimeError, OSError, EOFError, UnpicklingError):
        # No folder can be written, the disk is full, a file in the cache is damaged: do without.
        loop = numba.njit(signature, nogil=True)(function)
    return cast("Callable[..., Any]", loop)


def given(of: Any, dimensions: int = 1) -> Any:
    """The type of an array that a loop reads; it takes arrays that may be written as well."""
    return types.Array(of, dimensions, "C", readonly=True)


def made(of: Any, dimensions: int = 1) -> Any:
    """The type of an array that a loop makes or writes."""
    return types.Array(of, dimensions, "C")
