"""Candidate pairs by several indexes, one for each branch of a disjunction.

Stored tuples stay in the order of time; each branch has its own order of them in memory. A pair
that several branches find is given once, by the first of them: a later branch asks the tests of
the earlier ones again, on what it found, which needs no list of pairs to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tidegate.operate.join.pair_step import Candidates
from tidegate.operate.join.search import (
    Ask,
    ComparedWork,
    IndexedRun,
    Ints,
    Mask,
    candidates,
)

Values = npt.NDArray[np.float64] | npt.NDArray[np.float32]


def union(
    runs: Sequence[IndexedRun], asks: Sequence[Ask], work: ComparedWork
) -> Iterator[Candidates]:
    """Pairs (row of the asking table, row of the run's table) that a branch finds, each once.

    `runs` are the same tuples as the index of each branch finds them.
    """
    for i, (run, ask) in enumerate(zip(runs, asks, strict=True)):
        for probe, place, settled in candidates(run, ask, work):
            asking, held = ask.rows(probe), run.searched.rows(place)
            for other, earlier in zip(runs[:i], asks[:i], strict=True):
                fresh = np.flatnonzero(~_finds(other, earlier, asking, held))
                asking, held = asking[fresh], held[fresh]
            if len(asking):
                yield asking, held, settled


def _finds(run: IndexedRun, ask: Ask, asking: Ints, held: Ints) -> Mask:
    """Whether a branch finds pairs of the window: the tests of `candidates`, pair by pair."""
    probe, place = ask.probes(asking), run.searched.places(held)
    key, index = run.searched.key, ask.index
    assert key is not None
    assert index is not None
    found = _between(index[0][probe], key[place], index[1][probe])
    lows, highs = run.searched.narrowed(ask.bounds)
    for low, value, high in zip(lows, run.searched.values, highs, strict=True):
        found &= _between(low[probe], value[place], high[probe])
    return found


def _between(low: Values, value: Values, high: Values) -> Mask:
    return (low <= value) & (value <= high)
