"""The compiled loop of the pair kernel, between coded bounds and the positions of what matches.

Values and bounds are words that compare as unsigned integers in the order of the numbers they
stand for, so that `low <= value <= high` is one subtraction and one comparison: value - low, which
wraps round below low, is at most high - low.

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
from tidegate.operate.kernels.pair import LOOP_TESTS

_BLOCK = 2048  # three arrays of it, as 64-bit words, fit in a first-level cache
_GROUP = 256  # probes that share a block before the next one is taken
_RUNS = 4096  # room to begin with


@machine_code.part
def _code(bits: Any, place: Any, sign: Any, out: Any, rows: Any) -> Any:
    """Turn the bits of `rows` numbers from `place` on into words in the order of the numbers."""
    if bits is not None:
        word = out.dtype.type
        for i in range(rows):
            b = bits[np.uint64(place + i)]
            out[i] = b ^ (sign | word(-word(b >= sign)))


@machine_code.part
def _inside(code: Any, i: Any, low: Any, width: Any) -> Any:
    return code.dtype.type(code[i] - low) <= width


@machine_code.part
def _any(one: Any, two: Any, three: Any, start: Any, rows: Any, bound: Any) -> Any:
    """Whether one of the rows passes; no branch in the loop, so that it becomes vector code."""
    low1, width1, low2, width2, low3, width3 = bound
    found = False
    for i in range(rows):
        k = np.uint64(start + i)
        passes = _inside(one, k, low1, width1)
        if two is not None:
            passes &= _inside(two, k, low2, width2)
        if three is not None:
            passes &= _inside(three, k, low3, width3)
        found |= passes
    return found


@machine_code.part
def _mark(one: Any, two: Any, three: Any, start: Any, rows: Any, bound: Any, marks: Any) -> Any:
    """Write one byte a row, 1 where it passes, and zeros up to a whole word of eight."""
    low1, width1, low2, width2, low3, width3 = bound
    for i in range(rows, rows + 8):
        marks[i] = 0
    for i in range(rows):
        k = np.uint64(start + i)
        passes = _inside(one, k, low1, width1)
        if two is not None:
            passes &= _inside(two, k, low2, width2)
        if three is not None:
            passes &= _inside(three, k, low3, width3)
        marks[i] = passes


@machine_code.part
def _take(marks: Any, words: Any, rows: Any, s: Any, hits: Any, n: Any) -> Any:
    """Append s + i for every marked i; there must be room for all rows and eight more."""
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
    """Sort runs of hits by probe, stably, by counting; the hits of a run stay together."""
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
    bounds: Any,
    sign: Any,
    most: Any,
    one: Any,
    two: Any,
    three: Any,
) -> Any:
    """Pairs of a probe in `order` and a place in its range that pass all tests, sorted.

    `order`: probes with a range that is not empty, by `first`. `bounds`: a row of (low, high - low)
    per test and probe, coded. `one`, `two`, `three`: bits of the values, None where there is no
    test. Probes whose ranges begin near each other go over the values together, block by block: a
    block is coded once for all of them and stays in the first-level cache. Where more than `most`
    pass, the loop ends, and gives the first of them in any order: more than `most`.
    """
    one_c = np.empty(_BLOCK, bounds.dtype)
    two_c = None if two is None else np.empty(_BLOCK, bounds.dtype)
    three_c = None if three is None else np.empty(_BLOCK, bounds.dtype)
    marks = np.empty(_BLOCK + 8, np.uint8)
    words = marks.view(np.uint64)
    run_p, run_hits, runs = np.empty(_RUNS, np.int64), np.empty(_RUNS, np.int64), 0
    hits, n = np.empty(2 * _BLOCK, np.int64), 0
    dense = False
    i = 0
    while i < len(order):
        begin = first[order[i]]
        reach = begin + max(_BLOCK, last[order[i]] - begin)
        end = begin
        j = i
        while j < len(order) and j < i + _GROUP and first[order[j]] < reach:
            end = max(end, last[order[j]])
            j += 1
        tried, before = 0, runs
        for place in range(begin, end, _BLOCK):
            stop = min(place + _BLOCK, end)
            _code(one, place, sign, one_c, stop - place)
            _code(two, place, sign, two_c, stop - place)
            _code(three, place, sign, three_c, stop - place)
            for k in range(i, j):
                p = order[k]
                low = max(first[p], place)
                rows = min(last[p], stop) - low
                if rows <= 0:
                    continue
                tried += 1
                at = low - place
                bound = (
                    bounds[p, 0],
                    bounds[p, 1],
                    bounds[p, 2],
                    bounds[p, 3],
                    bounds[p, 4],
                    bounds[p, 5],
                )
                if dense or _any(one_c, two_c, three_c, at, rows, bound):
                    _mark(one_c, two_c, three_c, at, rows, bound, marks)
                    hits = _grown(hits, n, n + rows + 8)
                    more = _take(marks, words, rows, low, hits, n)
                    if more > n:
                        run_p = _grown(run_p, runs, runs + 1)
                        run_hits = _grown(run_hits, runs, runs + 1)
                        run_p[runs], run_hits[runs] = p, more - n
                        runs, n = runs + 1, more
            if n > most:
                return hits[:n], hits[:n]
        dense = 2 * (runs - before) > tried
        i = j
    return _place(run_p, run_hits, runs, hits, n, len(first))


@cache
def compiled(tests: int, word: str) -> Callable[..., Any]:
    """The loop for 1 to 3 tests of "uint32" or "uint64" words, from disk if it is there.

    It takes read-only arrays.
    """
    name = f"_pairs_{tests}_{word}"
    function = FunctionType(_pairs.__code__, globals(), name)
    function.__module__, function.__qualname__ = __name__, name
    unsigned = getattr(types, word)
    places = types.Array(types.int64, 1, "C", readonly=True)
    values = types.Array(unsigned, 1, "C", readonly=True)
    result = types.UniTuple(types.Array(types.int64, 1, "C"), 2)
    given = [values] * tests + [types.none] * (LOOP_TESTS - tests)
    bounds = types.Array(unsigned, 2, "C", readonly=True)
    signature = result(places, places, places, bounds, unsigned, types.int64, *given)
    return machine_code.compiled(signature, function)
