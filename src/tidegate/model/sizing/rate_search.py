"""Searches for the highest rate that something sustains, by trying rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

CLOSE = 1.15
"""Where a rate that is sustained and one that is not are so near, there are no more tries."""


@dataclass(frozen=True)
class RateSearch(Generic[T]):
    """The try with the highest rate that was sustained, None where none was, and all tries."""

    best: T | None
    tries: tuple[T, ...]


def highest_rate(
    attempt: Callable[[float], T],
    is_sustained: Callable[[T], bool],
    rate: float,
    tries: int,
    is_last: Callable[[T], bool] = lambda _: False,
) -> RateSearch[T]:
    """Try a rate, and from there others; never more than `tries`.

    Rates are doubled until one is not sustained, and halved until one is. Later tries are between
    the highest that was and the lowest that was not. After one that `is_last` there is no higher
    one: the input has too few rows for it.
    """
    done: list[T] = []
    best: T | None = None
    low, high = 0.0, math.inf
    while len(done) < tries and (not low or high / low >= CLOSE):
        done.append(one := attempt(rate))
        if is_sustained(one):
            low, best = rate, one
            if is_last(one):
                break
            rate = 2 * low if math.isinf(high) else math.sqrt(low * high)
        else:
            high = rate
            rate = math.sqrt(low * high) if low else rate / 2
    return RateSearch(best, tuple(done))
