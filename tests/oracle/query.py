"""Whole queries row by row, from the sources' own sequences to the output: the engine's twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.oracle.aggregate import sort_key, windows
from tests.oracle.asof import Nearest, nearest
from tests.oracle.gate import PlainSource
from tests.oracle.join import Joined, comparisons, join
from tests.oracle.outer_join import outer_join
from tests.oracle.session import sessions
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.session.spec import SessionSpec

Row = Mapping[str, Any]
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class PlainStream:
    """A stream as its sources speak it; each row has its event time, or None, under `ts`."""

    name: str
    sources: Sequence[Sequence[Row]]
    disorder: int = 0


@dataclass(frozen=True)
class Place:
    """Where a tuple stands: the stream's position in the query, the source's in it, its own."""

    stream: int
    source: int
    seq: int


@dataclass(frozen=True)
class Stateless:
    """Each ready tuple that `where` lets pass, as `select` makes it.

    All functions of a tuple find the position of its stream under `stream`.
    """

    select: Callable[[Row], Cells]
    where: Callable[[Row], bool] = lambda row: True


@dataclass(frozen=True)
class Order:
    """One key of ORDER BY over a result row."""

    key: Callable[[Row], Any]
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Windowed:
    """An aggregate over windows; a tuple has its keys and arguments by their names.

    `having` and `order` see a result row by the names of the spec's keys and functions.
    """

    spec: AggregateSpec | SessionSpec
    where: Callable[[Row], bool] = lambda row: True
    having: Callable[[Row], bool] = lambda row: True
    order: tuple[Order, ...] = ()
    limit: int | None = None
    per: Callable[[Row], Any] | None = None
    """Whose first `limit` rows are kept, in place of those of the window."""


@dataclass
class Answer:
    """The output in order, the places of the tuples in the side outputs, the pairs compared.

    `shed` is how many tuples were dropped on purpose.
    """

    rows: list[Cells] = field(default_factory=list)
    late: list[Place] = field(default_factory=list)
    rejected: list[Place] = field(default_factory=list)
    comparisons: int = 0
    shed: int = 0


class OverTuples(Protocol):
    """A query whose rows follow from the tuples in the total order."""

    def rows(self, tuples: Sequence[Row]) -> list[Cells]: ...


def interpret(
    query: Stateless | Windowed | Joined | Nearest | OverTuples, streams: Sequence[PlainStream]
) -> Answer:
    """What the query gives over these streams, which are its inputs by position."""
    answer = Answer()
    tuples = in_total_order(streams, answer)
    if not isinstance(query, Stateless | Windowed | Joined | Nearest):
        answer.rows = query.rows([row for _, row in tuples])
        return answer
    if isinstance(query, Joined):
        rows = [row for _, row in tuples]
        answer.comparisons = comparisons(query, rows)
        answer.rows = join(query, rows) if query.how == "inner" else outer_join(query, rows)
        return answer
    if isinstance(query, Nearest):
        answer.rows = nearest(query, [row for _, row in tuples])
        return answer
    passed = [(place, row) for place, row in tuples if query.where(row)]
    if isinstance(query, Stateless):
        answer.rows = [(row["ts"], *query.select(row)) for _, row in passed]
    else:
        answer.rows = _windows(query, passed)
    return answer


def in_total_order(streams: Sequence[PlainStream], answer: Answer) -> list[tuple[Place, Row]]:
    """The tuples in time; the late and the timeless ones are noted in the answer."""
    kept: list[tuple[Place, Row]] = []
    for position, stream in enumerate(streams):
        for number, rows in enumerate(stream.sources):
            source = PlainSource(stream.disorder)
            for seq, row in enumerate(rows):
                place = Place(position, number, seq)
                if row["ts"] is None:
                    answer.rejected.append(place)
                elif source.speak(seq, row["ts"]):
                    kept.append((place, {**row, "stream": position}))
                else:
                    answer.late.append(place)
    return sorted(kept, key=lambda t: (t[1]["ts"], t[0].stream, t[0].source, t[0].seq))


def _windows(query: Windowed, tuples: Sequence[tuple[Place, Row]]) -> list[Cells]:
    spec = query.spec
    rows = [{**row, "src": (p.stream, p.source), "seq": p.seq} for p, row in tuples]
    names = [name for name, _ in spec.keys] + [f.name for f in spec.functions]
    made = sessions(spec, rows) if isinstance(spec, SessionSpec) else windows(spec, rows)
    return ordered(query, made, names)


def ordered(query: Windowed, rows: Sequence[Cells], names: Sequence[str]) -> list[Cells]:
    """What HAVING, ORDER BY and LIMIT leave of the rows of windows."""
    by_end: dict[int, list[Cells]] = {}
    for cells in rows:
        if query.having(dict(zip(names, cells[2:], strict=True))):
            by_end.setdefault(cells[1], []).append(cells)
    output: list[Cells] = []
    for _, group in sorted(by_end.items()):
        for order in reversed(query.order):
            group = _ordered(group, names, order)
        counts: dict[Any, int] = {}
        for cells in group:
            part = query.per and sort_key(query.per(dict(zip(names, cells[2:], strict=True))))
            counts[part] = counts.get(part, 0) + 1
            if query.limit is None or counts[part] <= query.limit:
                output.append(cells)
    return output


def _ordered(group: list[Cells], names: Sequence[str], order: Order) -> list[Cells]:
    """A stable sort by one key; NULLs stand apart, whichever way the values go."""
    keyed = [(order.key(dict(zip(names, cells[2:], strict=True))), cells) for cells in group]
    nulls = [cells for key, cells in keyed if key is None]
    rest = [pair for pair in keyed if pair[0] is not None]
    rest.sort(key=lambda pair: sort_key(pair[0]), reverse=order.descending)
    values = [cells for _, cells in rest]
    return nulls + values if order.nulls_first else values + nulls
