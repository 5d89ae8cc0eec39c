"""Loops in machine code, between plain functions over arrays and Numba.

Importing this module imports Numba, which takes a third of a second: do so when there is work for a
loop. Machine code is kept on disk, beside the source, or in the user's cache folder where that
cannot be written; compiling a loop takes one to three seconds, loading it a tenth of one.
"""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, cast

import numba


def compiled(function: Callable[..., Any], signature: Any) -> Callable[..., Any]:
    """The function for arguments of one signature, from disk if it is there.

    A function compiled for several signatures needs a name for each: then each has an index of its
    own in the cache, and processes that compile at once write equal files, each by an atomic
    rename.
    """
    try:
        loop = numba.njit(signature, nogil=True, cache=True)(function)
    except (RuntimeError, OSError, EOFError, UnpicklingError):
        # No folder can be written, the disk is full, a file in the cache is damaged: do without.
        loop = numba.njit(signature, nogil=True)(function)
    return cast("Callable[..., Any]", loop)
