"""Finds the pairs of a batch in pieces of bounded size, so memory does not grow with the output.

A piece has all pairs of some later tuples that are neighbours in the total order. So the rows of
one piece after the other are in the order of the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.operate.join.match import MatchedPairs, Matching
from tidegate.operate.join.search import ComparedWork
from tidegate.operate.kernels.join.pair import NO_LIMIT

PIECE_PAIRS = 2**20
"""The largest number of pairs that are found, and become rows, at a time."""


def in_pieces(
    parts: Sequence[Matching], places: int, work: ComparedWork, most: int | None = None
) -> Iterator[tuple[int, list[MatchedPairs]]]:
    """The pairs of several matchings, in at least one piece, each with the place where it ends.

    `places` is the number of new tuples; comparisons are added to `work`. A piece has at most
    `most` pairs (PIECE_PAIRS), or those of a single tuple. A piece with more is given up and made
    again of half the tuples; after a small piece the next one is larger. So little is found in
    vain, and a batch with few pairs is one piece.
    """
    most = PIECE_PAIRS if most is None else most
    low, step = 0, max(places, 1)
    while True:
        high = min(low + step, places)
        found = _between(parts, low, high, work, most if high - low > 1 else NO_LIMIT)
        if found is None:
            step = (high - low) // 2
            continue
        yield high, found
        if high == places:
            return
        count, done = sum(len(p.place) for p in found), high - low
        low, step = high, max(min(2 * done, done * most // (2 * count + 1)), 1)


def _between(
    parts: Sequence[Matching], low: int, high: int, work: ComparedWork, most: int
) -> list[MatchedPairs] | None:
    """All pairs at places [low, high); None where there are more than `most`.

    Comparisons count only then when the piece is kept: they must not depend on how often a piece
    was halved.
    """
    found, done = list[MatchedPairs](), list[ComparedWork]()
    for part in parts:
        more = part.pairs(low, high, most - sum(len(p.place) for p in found))
        if more is None:
            return None
        found += more[0]
        done.append(more[1])
    for one in done:
        work.add(one)
    return found
