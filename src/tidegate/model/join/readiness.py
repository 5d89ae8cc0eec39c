"""How long tuples wait until they are ready, equations 16 to 21: the price of determinism.

A tuple is ready when every other source has brought one that comes after it. Sources of constant
rates repeat a pattern after their hyper-period, the least common multiple of their periods. The
offsets epsilon of the sources are tiny and in the order of the sources (R before S), as in the
paper: sources that coincide arrive one right after the other. The limit of no offset is worked out,
so no number has to be chosen for them.

Two things keep this exact and short. Rates are taken as fractions with small denominators, so
that 140/3 and 70 have a common multiple in whole numbers. And where the pattern has more than
LONGEST tuples, the offsets between sources of different rates take all values in turn, so the mean
over them is taken, which is an integral with a closed form. The two differ by less than the share
of one tuple in the pattern of a source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegate.model.operation import Floats

LONGEST = 4096
"""So many tuples of sources of different rates a hyper-period may have to be gone through."""

_LARGEST_DENOMINATOR = 1000
_RELATIVE_ERROR = 1e-9
"""A rate is a fraction with a denominator up to the one within the other, or it is none."""


def input_latency(rates: Floats, *, strict: bool = False) -> Floats:
    """l_i^in, the mean over all tuples of an interval; `rates` has a column for each source.

    The paper's tuples are ready with `ts <= F`, where F is the least of the newest timestamps of
    the sources, and its own next tuple is nothing that one has to wait for. In Tidegate readiness
    is `strict`, `ts < F`: a tuple also waits for the next one of its own source, and tuples that
    coincide have the same time and wait for the next of each other. NaN where a source is silent:
    it holds all others back, for as long as nobody can tell from the rates of the interval.
    """
    rows, places = np.unique(rates, axis=0, return_inverse=True)
    found = np.array([_of_interval(row, strict) for row in rows])
    result: Floats = found[places.reshape(-1)]
    return result


def mean_ready_s(rates: Sequence[float]) -> float:
    """The wait of sources with these rates, as Tidegate has it: strictly.

    0 where nobody can tell, because a source is silent.
    """
    if len(rates) < 2:
        return 1 / rates[0] if rates and rates[0] else 0.0
    found = float(input_latency(np.array([rates]), strict=True)[0])
    return found if math.isfinite(found) else 0.0


@dataclass(frozen=True)
class _Group:
    """The sources of one rate, which come together: the places of them all."""

    rate: float
    sources: tuple[int, ...]

    @property
    def period_s(self) -> float:
        return 1 / self.rate


def _of_interval(rates: Floats, strict: bool) -> float:
    if not (rates > 0).all() or len(rates) < 2:
        return math.nan
    groups = [
        _Group(float(rate), tuple(np.flatnonzero(rates == rate).tolist()))
        for rate in np.unique(rates)
    ]
    counts = _pattern([group.rate for group in groups])
    if counts is None:
        means = [_drifting(own, groups, strict) for own in groups]
    else:
        hyper_period_s = counts[0] / groups[0].rate
        means = [
            hyper_period_s * _coinciding(own, groups, counts, strict) for own in range(len(groups))
        ]
    tuples = [group.rate * len(group.sources) for group in groups]
    return sum(n * mean for n, mean in zip(tuples, means, strict=True)) / sum(tuples)


def _pattern(rates: list[float]) -> list[int] | None:
    """How many tuples each has in a hyper-period, equation 16; None where those are too many."""
    if len(rates) == 1:
        return [1]
    fractions = [Fraction(rate).limit_denominator(_LARGEST_DENOMINATOR) for rate in rates]
    for rate, fraction in zip(rates, fractions, strict=True):
        if abs(float(fraction) - rate) > _RELATIVE_ERROR * rate:
            return None
    scale = math.lcm(*(fraction.denominator for fraction in fractions))
    whole = [fraction.numerator * (scale // fraction.denominator) for fraction in fractions]
    shared = math.gcd(*whole)
    counts = [count // shared for count in whole]
    return counts if sum(counts) <= LONGEST else None


def _coinciding(own: int, groups: list[_Group], counts: list[int], strict: bool) -> float:
    """The mean wait of the tuples of a group in hyper-periods: equations 17 and 20.

    In a hyper-period tuple m of the group comes at m / count. That it has to wait for all sources
    x is the maximum over x of the time until ceil(m count_x / count) / count_x, in whole numbers.
    """
    count = counts[own]
    m = np.arange(count)
    waits = [(-m * other % count) / (count * other) for other in counts]
    total = 0.0
    for source in groups[own].sources:
        longest = np.full(count, 1 / count if strict else 0.0)
        for group, other, wait in zip(groups, counts, waits, strict=True):
            missed = strict or group.sources[0] < source  # one that coincides has come before
            np.maximum(longest, np.where(wait == 0, missed / other, wait), out=longest)
        total += float(longest.mean())
    return total / len(groups[own].sources)


def _drifting(own: _Group, groups: list[_Group], strict: bool) -> float:
    """The same where the groups have all offsets to one another in turn.

    A tuple waits for each other group a time that is even between nothing and its period. Of its
    own group, all but the first source wait for the next of the first.
    """
    periods_s = sorted(group.period_s for group in groups if group is not own)
    waiting = _longest_mean(own.period_s, periods_s)
    if strict:
        return waiting
    others = len(own.sources) - 1
    return (_longest_mean(0.0, periods_s) + others * waiting) / (others + 1)


def _longest_mean(least: float, periods: list[float]) -> float:
    """The mean of the maximum of `least` and even variates up to each of the sorted periods.

    The integral of 1 - P(maximum <= u), where that is a power of u between two periods.
    """
    mean, start = least, least
    for place, end in enumerate(periods):
        if end <= start:
            continue
        rest = periods[place:]  # those that can be above u
        power = len(rest) + 1
        ratios = math.prod(start / period for period in rest)
        below = math.prod(end / period for period in rest) * end - ratios * start
        mean += end - start - below / power
        start = end
    return mean
