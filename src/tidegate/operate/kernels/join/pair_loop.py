"""The compiled loop of the pair kernel: bounds and values in, positions of matches out.

Most pairs are far apart, and one byte per number shows that. Values and bounds are coded as one of
256 cells by the same function, which never decreases. A pair whose cells fail the test fails it
too; for the others the numbers decide. A vector register has four times as many bytes as single
floats.

Importing this module imports Numba: do so when there are pairs to find. Compiling a variant takes
one to three seconds, loading it a tenth of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import types

from tidegate import machine_code
from tidegate.operate.kernels.join.pair import LOOP_TESTS

_BLOCK = 4096  # three arrays of cells, and what is looked at of the numbers, fit in a cache
_CHUNK = 512  # rows of which one look at the cells says that none passes
_STEP = 128  # cells that the compiler puts into vectors without a rest
_GROUP = 1024  # probes that share a block before the next one is taken
_WIDE = 256  # shorter ranges are not worth the coding of a block
_FEW = 8  # nor are fewer probes
_PAUSE = 15  # groups without a look at the cells, after one in which it was in vain
_RUNS = 4096  # room to begin with


@machine_code.part
def _cell(number: Any, origin: Any, scale: Any) -> Any:
    """The cell of a number; NaN is in the first one."""
    at = (number - origin) * scale
    at = at if at > 0 else type(at)(0)
    return np.uint8(at if at < 255 else type(at)(255))


@machine_code.part
def _code(values: Any, place: Any, rows: Any, cells: Any, test: Any, out: Any) -> Any:
    """Write the cells of `rows` numbers from `place` on to `out`; nothing without values."""
    if values is not None:
        origin, scale = cells[test, 0], cells[test, 1]
        for i in range(rows):
            out[i] = _cell(values[np.uint64(place + i)], origin, scale)


@machine_code.part
def _code_bounds(
    order: Any, i: Any, j: Any, lows: Any, highs: Any, cells: Any, test: Any, out: Any
) -> Any:
    """Write the cells of lower bounds, and the cells between them and the upper ones."""
    if lows is not None:
        origin, scale = cells[test, 0], cells[test, 1]
        for k in range(i, j):
            low = _cell(lows[order[k]], origin, scale)
            high = _cell(highs[order[k]], origin, scale)
            out[k - i, 2 * test], out[k - i, 2 * test + 1] = low, high - low


@machine_code.part
def _bound(p: Any, low1: Any, high1: Any, low2: Any, high2: Any, low3: Any, high3: Any) -> Any:
    """The bounds of a probe; those of test 1 stand in where there is no test."""
    two = (low1[p], high1[p]) if low2 is None else (low2[p], high2[p])
    three = (low1[p], high1[p]) if low3 is None else (low3[p], high3[p])
    return low1[p], high1[p], two[0], two[1], three[0], three[1]


@machine_code.part
def _group(order: Any, first: Any, last: Any, i: Any) -> Any:
    """The end of the probes that go together, the end of their ranges, and whether these are wide.

    Narrow ranges do not repay the coding of a block.
    """
    begin = first[order[i]]
    reach = begin + max(_BLOCK, last[order[i]] - begin)
    end, rows, j = begin, 0, i
    while j < len(order) and j < i + _GROUP and first[order[j]] < reach:
        end = max(end, last[order[j]])
        rows += last[order[j]] - first[order[j]]
        j += 1
    return j, end, rows >= _WIDE * max(j - i, _FEW)


@machine_code.part
def _near(one: Any, two: Any, three: Any, start: Any, rows: Any, coded: Any, probe: Any) -> Any:
    """Whether the cells of any of the rows pass, or of one of a few rows after them.

    Rows begin at `start` of a block. One comparison tests both bounds: below the lower one,
    value - low wraps around to a large byte. The loop has no branch, and runs over whole steps
    beyond the rows, so that it becomes vector code without a remainder.
    """
    low1, low2, low3 = coded[probe, 0], coded[probe, 2], coded[probe, 4]
    width1, width2, width3 = coded[probe, 1], coded[probe, 3], coded[probe, 5]
    found = False
    for i in range((rows + _STEP - 1) // _STEP * _STEP):
        k = np.uint64(start + i)
        passes = np.uint8(one[k] - low1) <= width1
        if two is not None:
            passes &= np.uint8(two[k] - low2) <= width2
        if three is not None:
            passes &= np.uint8(three[k] - low3) <= width3
        found |= passes
    return found


@machine_code.part
def _passes(one: Any, two: Any, three: Any, k: Any, bound: Any) -> Any:
    low1, high1, low2, high2, low3, high3 = bound
    passes = (low1 <= one[k]) & (one[k] <= high1)
    if two is not None:
        passes &= (low2 <= two[k]) & (two[k] <= high2)
    if three is not None:
        passes &= (low3 <= three[k]) & (three[k] <= high3)
    return passes


@machine_code.part
def _any(one: Any, two: Any, three: Any, start: Any, rows: Any, bound: Any) -> Any:
    """Whether any of the rows passes."""
    found = False
    for i in range(rows):
        found |= _passes(one, two, three, np.uint64(start + i), bound)
    return found


@machine_code.part
def _mark(one: Any, two: Any, three: Any, start: Any, rows: Any, bound: Any, marks: Any) -> Any:
    """Write one byte per row, 1 where it passes, and zeros up to a whole word of eight."""
    for i in range(rows, rows + 8):
        marks[i] = 0
    for i in range(rows):
        marks[i] = _passes(one, two, three, np.uint64(start + i), bound)


@machine_code.part
def _take(marks: Any, words: Any, rows: Any, s: Any, hits: Any, n: Any) -> Any:
    """Append s + i for every marked i; there must be room for all rows and eight more.

    Each place is written and kept by moving n: a branch on a mark could not be predicted.
    """
    for w in range((rows + 7) // 8):
        if words[w] != 0:
            for i in range(8 * w, 8 * w + 8):
                hits[n] = s + i
                n += np.int64(marks[i])
    return n


@machine_code.part
def _grown(array: Any, used: Any, wanted: Any) -> Any:
    """The array, or a longer one that begins with its `used` first entries."""
    if wanted <= len(array):
        return array
    longer = np.empty(max(wanted, 2 * len(array)), array.dtype)
    for i in range(used):
        longer[i] = array[i]
    return longer


@machine_code.part
def _place(run_p: Any, run_hits: Any, runs: Any, hits: Any, total: Any, probes: Any) -> Any:
    """Sort runs of hits by probe, by counting; stable, so the hits of a probe stay in order."""
    ends = np.zeros(probes + 1, np.int64)
    for r in range(runs):
        ends[run_p[r] + 1] += run_hits[r]
    for p in range(probes):
        ends[p + 1] += ends[p]
    to_p, to_s = np.empty(total, np.int64), np.empty(total, np.int64)
    h = 0
    for r in range(runs):
        p = run_p[r]
        at = ends[p]
        ends[p] = at + run_hits[r]
        for i in range(run_hits[r]):
            to_p[at + i] = p
            to_s[at + i] = hits[h + i]
        h += run_hits[r]
    return to_p, to_s


def _pairs(
    order: Any,
    first: Any,
    last: Any,
    cells: Any,
    most: Any,
    low1: Any,
    high1: Any,
    one: Any,
    low2: Any,
    high2: Any,
    two: Any,
    low3: Any,
    high3: Any,
    three: Any,
) -> Any:
    """Pairs of a probe in `order` and a place in its range that pass all tests, sorted.

    `order`: the probes whose range is not empty, by `first`. `cells`: for each test where its first
    cell begins, and the cells per unit. `low1`, `high1`, `one` and so on: the bounds of the probes
    and the values; None where there is no test. Probes whose ranges begin near each other go over
    the values together, block by block: a block is coded once for all of them, and stays in the
    first-level cache. Where more than `most` pairs pass, the loop ends with more than `most` hits.
    """
    one_c = np.zeros(_BLOCK + _STEP, np.uint8)
    two_c = None if two is None else np.zeros(_BLOCK + _STEP, np.uint8)
    three_c = None if three is None else np.zeros(_BLOCK + _STEP, np.uint8)
    coded = np.empty((_GROUP, 2 * LOOP_TESTS), np.uint8)
    marks = np.empty(_BLOCK + 8, np.uint8)
    words = marks.view(np.uint64)
    run_p, run_hits, runs = np.empty(_RUNS, np.int64), np.empty(_RUNS, np.int64), 0
    hits, n = np.empty(2 * _BLOCK, np.int64), 0
    dense, pause = False, 0
    i = 0
    while i < len(order):
        begin = first[order[i]]
        j, end, wide = _group(order, first, last, i)
        coarse = wide and pause == 0
        if coarse:
            _code_bounds(order, i, j, low1, high1, cells, 0, coded)
            _code_bounds(order, i, j, low2, high2, cells, 1, coded)
            _code_bounds(order, i, j, low3, high3, cells, 2, coded)
        tried, near, before = 0, 0, runs
        for place in range(begin, end, _BLOCK):
            stop = min(place + _BLOCK, end)
            if coarse:
                _code(one, place, stop - place, cells, 0, one_c)
                _code(two, place, stop - place, cells, 1, two_c)
                _code(three, place, stop - place, cells, 2, three_c)
            for k in range(i, j):
                p = order[k]
                low, high = max(first[p], place), min(last[p], stop)
                step = _CHUNK if coarse else _BLOCK
                for at in range(low, high, step):
                    rows = min(step, high - at)
                    tried += 1
                    if coarse:
                        if not _near(one_c, two_c, three_c, at - place, rows, coded, k - i):
                            continue
                        near += 1
                    bound = _bound(p, low1, high1, low2, high2, low3, high3)
                    if coarse or dense or _any(one, two, three, at, rows, bound):
                        _mark(one, two, three, at, rows, bound, marks)
                        hits = _grown(hits, n, n + rows + 8)
                        more = _take(marks, words, rows, at, hits, n)
                        if more > n:
                            run_p = _grown(run_p, runs, runs + 1)
                            run_hits = _grown(run_hits, runs, runs + 1)
                            run_p[runs], run_hits[runs] = p, more - n
                            runs, n = runs + 1, more
            if n > most:
                return hits[:n], hits[:n]
        # Where most stretches had a hit `_any` is in vain; where most had a near cell, cells are.
        dense = 2 * (runs - before) > tried
        if coarse:
            pause = _PAUSE if 2 * near > tried else 0
        elif pause > 0:
            pause -= 1
        i = j
    return _place(run_p, run_hits, runs, hits, n, len(first))


@cache
def compiled(tests: int, number: str) -> Callable[..., Any]:
    """The loop for 1 to 3 tests of "float32" or "float64" numbers, from disk if it is there.

    It takes read-only arrays.
    """
    name = f"_pairs_{tests}_{number}"
    function = FunctionType(_pairs.__code__, globals(), name)
    function.__module__, function.__qualname__ = __name__, name
    real = getattr(types, number)
    places, values = machine_code.given(types.int64), machine_code.given(real)
    result = types.UniTuple(machine_code.made(types.int64), 2)
    given = [values] * 3 * tests + [types.none] * 3 * (LOOP_TESTS - tests)
    cells = machine_code.given(real, 2)
    signature = result(places, places, places, cells, types.int64, *given)
    return machine_code.compiled(signature, function)
