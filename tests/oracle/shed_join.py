"""Joins that shed, tuple by tuple: the twin of what thins their sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from tests.oracle.function import sort_key
from tests.oracle.join import Joined, Row, Within, pairs
from tests.oracle.query import Answer, Cells, PlainStream, in_total_order
from tests.oracle.sample import priority
from tidegate.approx.priority import seed_of

FEWEST, PANES = 2, 4
"""Of each key so many tuples are kept at least in a part of the shorter window, by concept."""

MEMORY = 16
"""For so many panes the keys of a side are remembered, or for the length of its window."""

SLACK = 2
"""How many times the rate a key's tuples are kept with at most."""

SEEDS = (seed_of("shed", "left"), seed_of("shed", "right"))


@dataclass(frozen=True)
class ShedJoin:
    """A join that sheds this share of its sides, each of which has a key.

    `where` are the conditions of each side, which are asked before anything is shed.
    """

    joined: Joined
    share: str
    by_concept: bool
    keys: tuple[str, ...]
    null_safe: bool = False
    where: tuple[Callable[[Row], bool], Callable[[Row], bool]] = (lambda r: True, lambda r: True)

    @property
    def rate(self) -> float:
        return float(1 - Fraction(self.share))

    def kept(self, left: Row, right: Row) -> float:
        """How probable a pair was."""
        if self.by_concept:
            return float(left["kept"] * right["kept"])
        return float((1 - Fraction(self.share)) ** 2)

    @property
    def pane_us(self) -> int:
        windows = (self.joined.left, self.joined.right)
        return max(min(w.range_us for w in windows if isinstance(w, Within)) // PANES, 1)


@dataclass(frozen=True)
class OverPairs:
    """COUNT(*), COUNT(i), SUM(i), SUM(x), AVG(i) over windows of the pairs of a join, by `r.k`."""

    join: ShedJoin
    range_us: int
    slide_us: int


def interpret_shed_join(query: ShedJoin, streams: Sequence[PlainStream]) -> Answer:
    """The pairs that are left; the last cell is the probability of each."""
    answer = Answer()
    answer.rows = [
        (ts, *query.joined.select(left, right), query.kept(left, right))
        for ts, left, right in _pairs(query, streams, answer)
    ]
    return answer


def interpret_over_pairs(query: OverPairs, streams: Sequence[PlainStream]) -> Answer:
    """The estimates; the last cell is the share of the pairs that they are from."""
    answer = Answer()
    groups: dict[tuple[int, Any], list[tuple[Any, Any, float, float]]] = {}
    for ts, left, right in _pairs(query.join, streams, answer):
        k = ts // query.slide_us
        while ts < k * query.slide_us + query.range_us:
            of = groups.setdefault((k, (right["k"] is not None, right["k"] or "")), [])
            of.append((right["k"], right["i"], left["x"], query.join.kept(left, right)))
            k -= 1
    for (k, _), members in sorted(groups.items(), key=lambda item: item[0]):
        start = k * query.slide_us
        answer.rows.append((start, start + query.range_us, *_estimates(members)))
    return answer


def _estimates(pairs: Sequence[tuple[Any, Any, float, float]]) -> Cells:
    every = math.fsum(1 / kept for *_, kept in pairs)
    there = [(i, kept) for _, i, _, kept in pairs if i is not None]
    number = math.fsum(1 / kept for _, kept in there)
    sum_i = math.fsum(float(i) / kept for i, kept in there) if there else None
    floats = [x / kept for *_, x, kept in pairs if x is not None]
    return (
        pairs[0][0],
        _whole(every),
        _whole(number),
        None if sum_i is None else _whole(sum_i),
        math.fsum(floats) if floats else None,
        None if sum_i is None else sum_i / number,
        len(pairs) / every,
    )


def _whole(value: float) -> int:
    return int(Decimal(value).to_integral_value(ROUND_HALF_UP))


def _pairs(
    query: ShedJoin, streams: Sequence[PlainStream], answer: Answer
) -> list[tuple[int, Row, Row]]:
    rows = []
    history = History(query)
    for place, row in in_total_order(streams, answer):
        side = place.stream
        if not query.where[side](row):
            continue
        word = priority(SEEDS[side], (side << 32) + place.source, place.seq)
        kept = history.met(side, row) if query.by_concept else query.rate
        if word < kept * 2**64:
            rows.append({**row, "kept": kept})
    found = pairs(query.joined, rows)
    return [pair for pair in found if query.joined.on(pair[1], pair[2]) is True]


class History:
    """How many tuples of each key, side and pane there were, up to the tuple at hand."""

    def __init__(self, query: ShedJoin) -> None:
        self.query = query
        self.counts: dict[tuple[int, Any], dict[int, int]] = {}

    def met(self, side: int, row: Row) -> float:
        """Count a tuple; with which probability it is kept."""
        key, pane = _key(self.query, row), row["ts"] // self.query.pane_us
        if key is None:
            return self.query.rate
        own, other = (self.before(s, key, pane) for s in (side, 1 - side))
        mine = self.counts.setdefault((side, key), {})
        mine[pane] = mine.get(pane, 0) + 1
        met = other > 0 or pane in self.counts.get((1 - side, key), {})
        if (met or not own) and mine[pane] <= FEWEST:
            return 1.0
        scale = (own + other) / (2 * own) if own else SLACK if other else 1
        return min(self.query.rate * min(scale, SLACK), 1.0)

    def before(self, side: int, key: Any, pane: int) -> int:
        """How many tuples the last pane before has, if it is remembered."""
        window = (self.query.joined.left, self.query.joined.right)[side]
        assert isinstance(window, Within)
        reach = max(math.ceil(Fraction(window.range_us, self.query.pane_us)), MEMORY)
        panes = self.counts.get((side, key), {})
        return next((panes[p] for p in range(pane - 1, pane - reach - 1, -1) if p in panes), 0)


def _key(query: ShedJoin, row: Row) -> Any:
    """Keys with a NULL are like one, but where NULL equals NULL."""
    if not query.null_safe and any(row[name] is None for name in query.keys):
        return None
    return tuple(sort_key(row[name]) for name in query.keys)
