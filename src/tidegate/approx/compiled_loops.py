"""Compiles the loops of shedding, or loads them, before any tuple is shed.

On a machine that has no machine code of them yet that takes seconds, and shedding begins when there
is no time to lose.
"""

from __future__ import annotations

from functools import cache


@cache
def prepare() -> None:
    """Have the loops in this process; once, then it costs nothing. Imports Numba."""
    from tidegate.approx.priority_loop import priorities_loop
    from tidegate.approx.rate_loop import levelled_loop
    from tidegate.approx.stratum_loop import lacking_loop, strata_loop

    for loop in (priorities_loop, levelled_loop, strata_loop, lacking_loop):
        loop()
