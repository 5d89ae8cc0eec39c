"""Priorities of one rate levelled to those of another, beside the arithmetic a tuple at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tidegate.approx.rate import SLACK, WHOLE, levelled, limit_of

RATES = (0.5, 1.0, 0.999, 0.3, 0.05)


def plainly(word: int, limit: int, to: int) -> Fraction:
    """Two straight lines: one to SLACK times the limit, as far as that is there, one beyond."""
    slack = min(Fraction(SLACK), Fraction(WHOLE, limit), Fraction(WHOLE, to))
    if word < slack * limit:
        return Fraction(word) * to / limit
    return slack * to + (word - slack * limit) * (WHOLE - slack * to) / (WHOLE - slack * limit)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("level", [0.05, 0.25])
def test_what_is_kept_at_a_rate_and_nothing_else_is_below_the_level(
    rate: float, level: float
) -> None:
    limit, to = limit_of(rate), limit_of(level)
    near = [w for w in (0, 1, limit - 1, limit, limit + 1, WHOLE - 1) if w < WHOLE]
    chance = np.random.default_rng(7).integers(0, WHOLE, 2_000, np.uint64)
    words = np.concatenate([np.array(near, np.uint64), np.sort(chance)])
    found = levelled(words, rate, level)
    for word, got in zip(words.tolist(), found.tolist(), strict=True):
        assert (got < to) == (word < limit), (word, got)
        assert abs(got - plainly(word, limit, to)) <= WHOLE // 2**50, (word, got)
    assert (np.diff(found[len(near) :].astype(object)) >= 0).all(), "their order stays"
