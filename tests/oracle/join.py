"""Joins tuple by tuple, from two streams in the total order to pairs: the join's twin."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Cells = tuple[Any, ...]

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Within:
    """A window over time: the tuples at most so long before the one that arrives.

    Those before it are in the order of time.
    """

    range_us: int

    def held(self, earlier: Sequence[Row], ts: int) -> Sequence[Row]:
        return earlier[bisect_left(earlier, ts - self.range_us, key=lambda row: row["ts"]) :]


@dataclass(frozen=True)
class Newest:
    """A window over tuples: the last so many before the one that arrives."""

    rows: int

    def held(self, earlier: Sequence[Row], ts: int) -> Sequence[Row]:
        return earlier[-self.rows :]


@dataclass(frozen=True)
class Joined:
    """All pairs whose earlier tuple the window of its side holds when the later one arrives.

    `on` is the predicate with SQL's third value: a pair matches only where it is True. Conditions
    of WHERE belong to it, too. `how` says what else comes, see `tests.oracle.outer_join`.
    """

    left: Within | Newest
    right: Within | Newest
    on: Callable[[Row, Row], bool | None]
    select: Callable[[Row, Row], Cells]
    how: str = "inner"


def pairs(query: Joined, tuples: Sequence[Row]) -> Iterator[tuple[int, Row, Row]]:
    """Every pair to compare, in the order of the output: its time, left and right tuple.

    `tuples` come in the total order, each with its side under `stream`.
    """
    windows = (query.left, query.right)
    earlier: tuple[list[Row], list[Row]] = ([], [])
    for later in tuples:
        side, ts = later["stream"], later["ts"]
        other = RIGHT if side == LEFT else LEFT
        for met in windows[other].held(earlier[other], ts):
            yield (ts, later, met) if side == LEFT else (ts, met, later)
        earlier[side].append(later)


def join(query: Joined, tuples: Sequence[Row]) -> list[Cells]:
    """The output: the time of the later tuple, then the select list."""
    return [
        (ts, *query.select(left, right))
        for ts, left, right in pairs(query, tuples)
        if query.on(left, right) is True
    ]


def comparisons(query: Joined, tuples: Sequence[Row]) -> int:
    """How many pairs the definition compares."""
    return sum(1 for _ in pairs(query, tuples))
