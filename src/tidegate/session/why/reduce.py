"""Finds few of many things that are enough, by trying: group testing with a judge.

This is delta debugging (Zeller and Hildebrandt 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

Enough = Callable[[list[T]], bool]


def reduced(things: Sequence[T], enough: Enough[T], most_tries: int) -> tuple[list[T], bool]:
    """Things of which none can be left out, and whether that is so for sure.

    `things` are enough. It is not sure after so many tries; what is returned is enough all the
    same. Takes some log(n) tries for each thing that stays.
    """
    left, parts, tries = list(things), 2, 0
    while len(left) > 1:
        size = -(-len(left) // parts)
        pieces = [left[at : at + size] for at in range(0, len(left), size)]
        others = [[t for piece in pieces if piece is not out for t in piece] for out in pieces]
        candidates = [(piece, 2) for piece in pieces]
        if len(pieces) > 2:
            candidates += [(other, max(len(pieces) - 1, 2)) for other in others]
        for candidate, next_parts in candidates:
            if tries == most_tries:
                return left, False
            tries += 1
            if enough(candidate):
                left, parts = candidate, next_parts
                break
        else:
            if size == 1:
                return left, True
            parts = min(2 * parts, len(left))
    return left, True
