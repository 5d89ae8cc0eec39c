"""Searches by several indexes, one for each branch of a disjunction.

Stored tuples stay in the order of time; each branch has its own order of them in memory. A pair
that several branches find counts for the first of them. A later branch therefore applies the tests
of the earlier ones to what it found: that needs no list of the pairs found so far, which would grow
with the output.
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
    """Pairs (row of the asking table, row of the run's table) that any branch finds, each once.

    `runs` has the same tuples once for each branch, in the order of its index.
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
    """Which pairs a branch finds too: exactly the tests that `candidates` makes, pair by pair.

    It must compare the same single floats: a test of doubles would call a pair fresh that the
    earlier branch has given already.
    """
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
