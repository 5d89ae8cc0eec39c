"""Finds the pairs of probes and stored rows that pass range tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Floats = NDArray[np.float32] | NDArray[np.float64]

LOOP_TESTS = 3
"""The compiled loop makes at most so many tests; others are made on the pairs that passed."""

NO_LIMIT = 2**62
"""More pairs than there can be."""

_KINDS = ("float32", "float64")

_SAMPLE = 256
"""So many values are sampled to place the cells."""


def find(
    first: Int64s,
    last: Int64s,
    lows: Sequence[Floats],
    highs: Sequence[Floats],
    values: Sequence[Floats],
) -> tuple[Int64s, Int64s]:
    """Pairs (p, s) with first[p] <= s < last[p] that pass every test; in order of p, then s.

    Test j is lows[j][p] <= values[j][s] <= highs[j][p]; with NaN it fails. A range may be empty
    (last <= first); one that is not lies within the values. All test arrays share one dtype,
    float32 or float64, and may be read-only. Up to three tests run in compiled code: put the most
    selective first, the others see only what passed. Costs about 0.1 ns a pair of a probe and a
    place in its range (float32, two tests), a third of that where few pass, and holds up to 48
    bytes a hit while it runs.
    """
    found = find_few(first, last, lows, highs, values, NO_LIMIT)
    assert found is not None
    return found


def find_few(
    first: Int64s,
    last: Int64s,
    lows: Sequence[Floats],
    highs: Sequence[Floats],
    values: Sequence[Floats],
    most: int,
) -> tuple[Int64s, Int64s] | None:
    """As `find`, or None where more than `most` pairs pass the tests of the compiled code.

    The search ends as soon as it knows, so it holds little more than `most` pairs.
    """
    if not values:
        return _all_pairs(first, last)
    kind = _kind(lows, highs, values)
    rows = min(len(column) for column in values)
    used = last > first
    tests = list(zip(lows, highs, values))[:LOOP_TESTS]
    # A probe with an empty interval, or with NaN in a bound, finds nothing.
    for low, high, _ in tests:
        used &= low <= high
    order = np.flatnonzero(used)
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = first[order]
    if starts.min() < 0 or last[order].max() > rows:
        raise ValueError(
            f"pair kernel: ranges must lie within the {rows} values; "
            f"got {starts.min()} to {last[order].max()}."
        )
    # The loop takes probes in the order of their ranges, so that neighbours share a block.
    if not bool((starts[1:] >= starts[:-1]).all()):
        order = order[np.argsort(starts)]
    p, s = _loop(order, first, last, tests, kind, most)
    if len(p) > most:
        return None
    return passing(p, s, lows[LOOP_TESTS:], highs[LOOP_TESTS:], values[LOOP_TESTS:])


def _all_pairs(first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
    counts = np.maximum(last - first, 0)
    p = np.repeat(np.arange(len(first)), counts)
    s = np.arange(len(p)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    return p, s


def _kind(*arguments: Sequence[Floats]) -> str:
    """The name of the dtype of all arrays; a TypeError where they differ."""
    kinds = sorted({array.dtype.name for arrays in arguments for array in arrays})
    if len(kinds) != 1 or kinds[0] not in _KINDS:
        raise TypeError(
            f"pair kernel: all tests must be float32, or all float64; got {', '.join(kinds)}."
        )
    return kinds[0]


def _cells(values: Floats) -> tuple[float, float]:
    """Where the first of 256 cells begins, and the cells per unit, so that they divide the values.

    Outliers are left to the first and the last cell, or they would leave all others in one.
    """
    sample = np.sort(values[:: max(len(values) // _SAMPLE, 1)])
    sample = sample[np.isfinite(sample)]
    if not len(sample):
        return 0.0, 0.0
    low, high = (float(sample[i]) for i in (len(sample) // 64, -1 - len(sample) // 64))
    return low, 256 / (high - low) if high > low else 0.0


def _loop(
    order: Int64s,
    first: Int64s,
    last: Int64s,
    tests: Sequence[tuple[Floats, Floats, Floats]],
    kind: str,
    most: int,
) -> tuple[Int64s, Int64s]:
    from tidegate.operate.kernels.join.pair_loop import compiled

    missing = LOOP_TESTS - len(tests)
    given = [_fixed(array) for test in tests for array in test] + [None] * (3 * missing)
    cells = np.array([*(_cells(test[2]) for test in tests), *[(0.0, 0.0)] * missing], kind)
    places = (_fixed(order, np.int64), _fixed(first, np.int64), _fixed(last, np.int64))
    found: tuple[Int64s, Int64s] = compiled(len(tests), kind)(*places, cells, most, *given)
    return found


def _fixed(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """A contiguous, aligned, read-only view: the loop is compiled for no other kind of array."""
    view = np.require(array, dtype, ("C", "A")).view()
    view.flags.writeable = False
    return view


def passing(
    p: Int64s,
    s: Int64s,
    lows: Sequence[Floats],
    highs: Sequence[Floats],
    values: Sequence[Floats],
) -> tuple[Int64s, Int64s]:
    """The pairs that pass some tests, in their order; for few pairs, or tests beyond the loop's."""
    for low, high, column in zip(lows, highs, values):
        value = column[s]
        kept = (low[p] <= value) & (value <= high[p])
        p, s = p[kept], s[kept]
    return p, s
