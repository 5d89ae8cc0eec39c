"""Priorities and samples tuple by tuple, in whole numbers: the twin of `tidegate.approx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_WORD = 2**64 - 1


def priority(seed: int, src: int, seq: int) -> int:
    """The word of a tuple."""
    before = _mixed(_mixed(seed) ^ (src & _WORD))
    return _mixed(_mixed(((seq & _WORD) + before) & _WORD) + _mixed(before))


def _mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def sample(tuples: Sequence[tuple[int, Any]], k: int) -> list[tuple[int, Any]]:
    """Of (priority, anything), those below the lowest power of two that leaves k; by priority."""
    in_order = sorted(tuples, key=lambda one: one[0])
    for zeros in range(53, 0, -1):
        kept = [one for one in in_order if one[0] < 2 ** (64 - zeros)]
        if len(kept) >= k:
            return kept
    return in_order
