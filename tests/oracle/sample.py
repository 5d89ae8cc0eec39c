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


def sample(tuples: Sequence[tuple[int, Any]], k: int, rate: float) -> list[tuple[int, Any]]:
    """Of (priority, anything), those below the rate, and the k lowest with all that tie."""
    in_order = sorted(tuples, key=lambda one: one[0])
    kept = [one for one in in_order if one[0] < rate * 2**64]
    if k == 0 or len(kept) >= k:
        return kept
    last = in_order[:k][-1][0] if in_order else 0
    return [one for one in in_order if one[0] <= last]
