"""Holds a set of integers as ranges: the orders of the consumed sources of a folder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class ConsumedOrders:
    """A set of integers from 0 on, as ascending ranges.

    Sources are consumed about in the order in which they came. So nearly all are in one range from
    0 on, whose end is the watermark. Grows with the gaps above it.
    """

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self._firsts.append(first)
            self._lasts.append(last)

    def add(self, first: int, last: int) -> None:
        """Add all numbers from `first` to `last`, none of which may be in the set yet."""
        at = bisect_right(self._firsts, first)
        joins_before = at > 0 and self._lasts[at - 1] == first - 1
        joins_after = at < len(self._firsts) and self._firsts[at] == last + 1
        if joins_before and joins_after:
            self._lasts[at - 1] = self._lasts.pop(at)
            del self._firsts[at]
        elif joins_before:
            self._lasts[at - 1] = last
        elif joins_after:
            self._firsts[at] = first
        else:
            self._firsts.insert(at, first)
            self._lasts.insert(at, last)

    def __contains__(self, order: int) -> bool:
        at = bisect_right(self._firsts, order) - 1
        return at >= 0 and order <= self._lasts[at]

    @property
    def watermark(self) -> int:
        """The least number that is not in the set."""
        return self._lasts[0] + 1 if self._firsts and self._firsts[0] == 0 else 0

    def ranges(self) -> list[list[int]]:
        """The ranges, ascending, each with its first and its last number."""
        return [[first, last] for first, last in zip(self._firsts, self._lasts, strict=True)]
