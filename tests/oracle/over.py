"""Functions OVER tuple by tuple, as the definition says it: the twin of the engine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from tests.oracle.aggregate import result, sort_key
from tidegate.operate.aggregate.function import Function

Row = Mapping[str, Any]


@dataclass(frozen=True)
class PlainFrame:
    """An aggregate over the tuples from `rows` or `range_us` before; None in both for all.

    With `peers` up to the last tuple of the same instant, else up to the tuple itself.
    """

    function: Function
    rows: int | None = None
    range_us: int | None = None
    peers: bool = False

    def of(self, held: Sequence[Row], place: int) -> Any:
        now = held[place]["ts"]
        frame = [
            row
            for i, row in enumerate(held)
            if (i <= place or (self.peers and row["ts"] == now))
            and (self.rows is None or i >= place - self.rows)
            and (self.range_us is None or row["ts"] >= now - self.range_us)
        ]
        return result(self.function, frame, {})


@dataclass(frozen=True)
class PlainLag:
    """The value of the tuple so many before, or the default."""

    name: str
    offset: int = 1
    default: Any = None

    def of(self, held: Sequence[Row], place: int) -> Any:
        return held[place - self.offset][self.name] if place >= self.offset else self.default


@dataclass(frozen=True)
class PlainLead:
    """The value of the tuple so many after, or the default."""

    name: str
    offset: int = 1
    default: Any = None

    def of(self, held: Sequence[Row], place: int) -> Any:
        at = place + self.offset
        return held[at][self.name] if at < len(held) else self.default


@dataclass(frozen=True)
class PlainRank:
    """One more than the tuples at earlier instants, or than these instants."""

    dense: bool = False

    def of(self, held: Sequence[Row], place: int) -> int:
        earlier = [row["ts"] for row in held if row["ts"] < held[place]["ts"]]
        return 1 + len(set(earlier) if self.dense else earlier)


@dataclass(frozen=True)
class PlainOver:
    """The columns, over the tuples of each key; `where` sees a tuple, `qualify` all cells.

    Rows are in the order of the instants at which all of the tuples that they look at have come;
    those that look at tuples that never come are last.
    """

    keys: tuple[str, ...]
    columns: tuple[PlainFrame | PlainLag | PlainLead | PlainRank, ...]
    select: Callable[[Row], tuple[Any, ...]] = lambda row: ()
    where: Callable[[Row], bool] = lambda row: True
    qualify: Callable[[tuple[Any, ...]], bool] = lambda cells: True

    def rows(self, tuples: Sequence[Row]) -> list[tuple[Any, ...]]:
        held: dict[tuple[Any, ...], list[Row]] = {}
        places = []
        for number, row in enumerate(tuples):
            if self.where(row):
                own = held.setdefault(tuple(sort_key(row[k]) for k in self.keys), [])
                places.append((own, len(own)))
                own.append({**row, "src": 0, "seq": number})
        ahead = max((c.offset for c in self.columns if isinstance(c, PlainLead)), default=0)

        def instant(found: tuple[list[Row], int]) -> float:
            own, place = found
            return own[place + ahead]["ts"] if place + ahead < len(own) else inf

        output = []
        for own, place in sorted(places, key=instant):
            row = own[place]
            cells = (row["ts"], *self.select(row), *(c.of(own, place) for c in self.columns))
            if self.qualify(cells):
                output.append(cells)
        return output
