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
        return result(self.function, self.frame(held, place), {})

    def frame(self, held: Sequence[Row], place: int) -> list[Row]:
        now = held[place]["ts"]
        return [
            row
            for i, row in enumerate(held)
            if (i <= place or (self.peers and row["ts"] == now))
            and (self.rows is None or i >= place - self.rows)
            and (self.range_us is None or row["ts"] >= now - self.range_us)
        ]


@dataclass(frozen=True)
class PlainNth:
    """The value of the tuple with a number in the frame, of those that are not NULL if skipped."""

    name: str
    number: int
    frame: PlainFrame
    skips_null: bool = False

    def of(self, held: Sequence[Row], place: int) -> Any:
        values = [row[self.name] for row in self.frame.frame(held, place)]
        values = [v for v in values if v is not None or not self.skips_null]
        return values[self.number - 1] if self.number <= len(values) else None


@dataclass(frozen=True)
class PlainLag:
    """The value of the tuple so many before, or the default."""

    name: str
    offset: int = 1
    default: Any = None
    skips_null: bool = False

    def of(self, held: Sequence[Row], place: int) -> Any:
        if self.offset == 0:
            return held[place][self.name]
        values = [row[self.name] for row in held[:place]]
        values = [v for v in values if v is not None or not self.skips_null]
        return values[-self.offset] if self.offset <= len(values) else self.default


@dataclass(frozen=True)
class PlainLead:
    """The value of the tuple so many after, or the default."""

    name: str
    offset: int = 1
    default: Any = None
    skips_null: bool = False

    def later(self, held: Sequence[Row], place: int) -> Row | None:
        """The tuple that it shows, if it has come."""
        after = [r for r in held[place + 1 :] if r[self.name] is not None or not self.skips_null]
        return after[self.offset - 1] if self.offset <= len(after) else None

    def of(self, held: Sequence[Row], place: int) -> Any:
        later = self.later(held, place)
        return self.default if later is None else later[self.name]


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
    columns: tuple[PlainFrame | PlainNth | PlainLag | PlainLead | PlainRank, ...]
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
        ahead = [c for c in self.columns if isinstance(c, PlainLead)]

        def instant(found: tuple[list[Row], int]) -> float:
            own, place = found
            shown = [lead.later(own, place) for lead in ahead] or [own[place]]
            return max(inf if row is None else row["ts"] for row in shown)

        output = []
        for own, place in sorted(places, key=instant):
            row = own[place]
            cells = (row["ts"], *self.select(row), *(c.of(own, place) for c in self.columns))
            if self.qualify(cells):
                output.append(cells)
        return output
