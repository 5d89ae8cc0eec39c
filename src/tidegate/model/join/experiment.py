"""The rates of the papers' experiments, and of a made-up stock market, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tidegate.model.join.trace import Trace
from tidegate.model.operation import Floats

PART_S = 300
PEAK_S = 30


@dataclass(frozen=True)
class TracePart:
    """A stretch of an experiment that has a name, from its first second to before its last."""

    name: str
    start_s: int
    end_s: int


@dataclass(frozen=True)
class Experiment:
    """A trace, and the names of its parts."""

    trace: Trace
    parts: tuple[TracePart, ...]


def section7() -> Experiment:
    """The rates of figure 7: 25 minutes, 5 parts of 5 minutes, one source for each stream.

    The text gives the rates of parts A and B and the heights of the peaks. Where the peaks stand,
    and the heights and periods of the others, are chosen after the figure's description, so that
    the work is largest at the aligned peaks of part B, as section 7.2 says:

    A  both streams 140 tuples a second
    B  R 150 and S 160; peaks of 30 s, R +100 and S +80: R alone, S alone, both together, and R with
       S in its second half
    C  triangles between 100 and 200 with opposite phases, three of 100 s: their sum is always 300
    D  sinusoids around 150 by 50, R with a period of 150 s and S of 100 s, in whole tuples
    E  R 160 and S 150; peaks as in B, of which those of R are negative (-100)
    """
    seconds, even = np.arange(PART_S), np.full(PART_S, 140.0)
    triangle = 100 + 100 * (1 - np.abs(2 * (seconds % 100 / 100) - 1))  # up to 200 and back
    wave_r, wave_s = (
        np.rint(150 + 50 * np.sin(2 * np.pi * seconds / period_s)) for period_s in (150, 100)
    )
    r_at, s_at = (30, 150, 225), (90, 150, 240)
    parts = {
        "A": (even, even),
        "B": (_peaks(150.0, 100.0, r_at), _peaks(160.0, 80.0, s_at)),
        "C": (triangle, 300 - triangle),
        "D": (wave_r, wave_s),
        "E": (_peaks(160.0, -100.0, r_at), _peaks(150.0, 80.0, s_at)),
    }
    r, s = (np.concatenate(rates)[:, np.newaxis] for rates in zip(*parts.values(), strict=True))
    starts = enumerate(parts)
    return Experiment(
        Trace(np.arange(len(r), dtype=np.float64), r, s),
        tuple(TracePart(name, n * PART_S, (n + 1) * PART_S) for n, name in starts),
    )


def section8(number: int) -> Experiment:
    """The loads of section 8.1: 20 minutes of phases of 100 to 300 s, from 500 to 8,000 tuples/s.

    The rate of each phase, which both streams have a half of, and its length are drawn; five of
    these experiments, `number` is the seed, are what the controller is judged by.
    """
    generator = np.random.default_rng(number)
    seconds, parts = 1_200, list[TracePart]()
    rates = np.empty(seconds)
    start = 0
    while start < seconds:
        rate, length = int(generator.integers(500, 8_001)), int(generator.integers(100, 301))
        end = min(start + length, seconds)
        rates[start:end] = rate
        parts.append(TracePart(f"{len(parts) + 1}", start, end))
        start = end
    return Experiment(_halves(rates), tuple(parts))


def trades(seed: int = 9) -> Experiment:
    """Half an hour like that of a stock market, from 0 to 8,000 tuples/s, half of each stream.

    A busy opening, levels of activity that last for 20 to 240 s, bursts of 2 to 20 s on top of
    them, seconds that differ by a third, and now and then one in which nothing happens. All drawn.
    """
    generator = np.random.default_rng(seed)
    seconds = 1_800
    rates = np.empty(seconds)
    start = 0
    while start < seconds:
        length = int(generator.integers(20, 240))
        rates[start : start + length] = 600 * generator.lognormal(0, 0.9)
        start += length
    rates *= 1 + 3 * np.exp(-np.arange(seconds) / 90)
    for _ in range(60):
        start, length = int(generator.integers(0, seconds)), int(generator.integers(2, 20))
        rates[start : start + length] *= 1 + 5 * generator.random()
    rates *= generator.gamma(12, 1 / 12, seconds)
    rates[generator.random(seconds) < 0.03] = 0
    return Experiment(_halves(np.minimum(np.rint(rates), 8_000)), ())


EXPERIMENTS: Mapping[str, Callable[[], Experiment]] = {
    "section7": section7,
    **{f"section8-{number}": partial(section8, number) for number in range(1, 6)},
    "trades": trades,
}


def _halves(rates: Floats) -> Trace:
    column = rates[:, np.newaxis] / 2
    return Trace(np.arange(len(rates), dtype=np.float64), column, column)


def _peaks(rate: float, height: float, starts: Sequence[int]) -> Floats:
    rates = np.full(PART_S, rate)
    for start in starts:
        rates[start : start + PEAK_S] += height
    return rates
