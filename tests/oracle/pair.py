"""Range tests on pairs by a nested loop: the plain twin of the pair kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def plain_pairs(
    first: Sequence[int],
    last: Sequence[int],
    lows: Sequence[Sequence[Any]],
    highs: Sequence[Sequence[Any]],
    values: Sequence[Sequence[Any]],
) -> list[tuple[int, int]]:
    """All (p, s) with first[p] <= s < last[p] that pass every test, p by p."""
    return [
        (p, s)
        for p in range(len(first))
        for s in range(first[p], last[p])
        if all(
            low[p] <= value[s] <= high[p]
            for low, high, value in zip(lows, highs, values, strict=True)
        )
    ]
