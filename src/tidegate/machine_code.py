"""Compiles kernel loops with Numba and caches the machine code on disk.

Importing this module imports Numba, which takes a third of a second, so import it only when there
are rows for a loop. The cache is beside the source, or in the user's cache folder if that is not
writable. Compiling a loop takes about a second, loading it a few hundredths.
"""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, cast

import numba
from numba import types


def part(function: Callable[..., Any]) -> Any:
    """A function inlined into a loop and cached with it; it must be in the same file."""
    return numba.njit(nogil=True)(function)


def compiled(signature: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop for arguments of these types, loaded from disk if cached.

    Loops of different types need different names, because the cache has one index per name.
    Processes that compile at once write equal files, each by an atomic rename.
    """
    try:
        loop = numba.njit(signature, nogil=True, cache=True)(function)
    except (RuntimeError, OSError, EOFError, UnpicklingError):
        # No folder can be written, the disk is full, a file in the cache is damaged: do without.
        loop = numba.njit(signature, nogil=True)(function)
    return cast("Callable[..., Any]", loop)


def given(of: Any, dimensions: int = 1) -> Any:
    """The type of an array that a loop reads; accepts writable arrays too."""
    return types.Array(of, dimensions, "C", readonly=True)


def made(of: Any, dimensions: int = 1) -> Any:
    """The type of an array that a loop writes."""
    return types.Array(of, dimensions, "C")
