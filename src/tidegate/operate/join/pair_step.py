"""Finds the pairs of ranges step by step, so that the candidates of a step fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tidegate.cancellation import between_pieces
from tidegate.operate.join.chain.run_index import Ints, Singles
from tidegate.operate.kernels.join.pair import NO_LIMIT, find_few, passing
from tidegate.operate.kernels.join.program import PairRun

_FIRST_PAIRS = 2**24
_MOST_PAIRS = 2**30

_HITS = 2**20
"""The number of candidates that a step aims at."""

_MOST_HITS = 2**22
"""A step that gives more candidates is made again with fewer probes."""

_DENSE = 8
"""Where at least one pair in so many passes the intervals, the compiled predicate goes first."""

Candidates = tuple[Ints, Ints, bool]
"""Probes, places in the run, and whether the compiled conjuncts are known to be true of them."""

Tests = tuple[Sequence[Singles], Sequence[Singles], Sequence[Singles]]
"""The tests of intervals: lower and upper bounds of the probes, and values of the run."""


def tested_pairs(first: Ints, last: Ints, tests: Tests) -> Iterator[Candidates]:
    """The pairs of ranges that pass the tests of intervals."""
    for a, b, hits in _steps(first, last, bool(tests[2])):
        found = _tested(first, last, tests, slice(a, b))
        if found is not None:
            hits.append(len(found[0]))
            yield *found, False


def compiled_pairs(
    program: PairRun,
    first: Ints,
    last: Ints,
    tests: Tests,
) -> Iterator[Candidates]:
    """The pairs of ranges that pass the tests of intervals and the compiled predicate.

    What few pairs pass goes first. A pair that the intervals refuse never reaches a conjunct that
    may fail, whichever goes first: doubtful pairs are tested by the intervals before they are
    decided.
    """
    dense = not tests[2]
    for a, b, hits in _steps(first, last, True):
        some = slice(a, b)
        if dense:
            found = program.find(first, last, _most(some), some)
            if found is None:
                continue
            hits.append(sum(len(p) for p, _ in found))
            found = passing(*found[0], *tests), passing(*found[1], *tests)
        else:
            tested = _tested(first, last, tests, some)
            if tested is None:
                continue
            hits.append(len(tested[0]))
            dense = _DENSE * len(tested[0]) > int((last[a:b] - first[a:b]).sum())
            found = program.passing(*tested)
        for (p, s), settled in zip(found, (True, False), strict=True):
            if len(p):
                yield p, s, settled


def _tested(first: Ints, last: Ints, tests: Tests, some: slice) -> tuple[Ints, Ints] | None:
    """The pairs of some probes that pass the tests; None where there are too many."""
    lows, highs, values = tests
    bounds = [x[some] for x in lows], [x[some] for x in highs]
    found = find_few(first[some], last[some], *bounds, values, _most(some))
    return None if found is None else (found[0] + some.start, found[1])


def _most(some: slice) -> int:
    """How many pairs a step may give; without a limit for a single probe, which cannot be split."""
    return _MOST_HITS if some.stop - some.start > 1 else NO_LIMIT


def _steps(first: Ints, last: Ints, narrowed: bool) -> Iterator[tuple[int, int, list[int]]]:
    """Ranges of probes [start, stop), each with an empty list, so that candidates fit into memory.

    The caller appends how many candidates the step gave, from which the next step gets its size. It
    appends nothing where there were too many: then the same probes come again, fewer at a time.
    """
    ends = np.cumsum(last - first)
    start, done = 0, 0
    most = _FIRST_PAIRS if narrowed else _HITS
    while start < len(ends):
        stop = max(int(np.searchsorted(ends, done + most, "right")), start + 1)
        hits: list[int] = []
        yield start, stop, hits
        made = int(ends[stop - 1]) - done
        between_pieces(made)
        if not hits:
            most = made // 4
            continue
        if made:
            share = max(hits[0], 1) / made
            most = int(min(max(_HITS / share, _HITS), _MOST_PAIRS))
        start, done = stop, int(ends[stop - 1])
