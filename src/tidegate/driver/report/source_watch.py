"""Counts the arrivals of each source in a batch, for the rates of the input.

Arrivals are not what a batch reads: tuples that wait after it have arrived too, and tuples that
waited before it arrived earlier. Costs a few numbers per source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.execute.runner import Outcomes
from tidegate.gate.backlog import Backlog
from tidegate.gate.cut import Cut
from tidegate.model.observation import InputLoad
from tidegate.model.operation import Operation
from tidegate.plan.physical import Edge, Plan, Subquery

Place = tuple[int, int]
"""The number of a stream, and the order of a source in it."""


@dataclass(frozen=True)
class SourceBatch:
    """One source in one batch; fields as in `InputLoad`, `stream` is the stream's number."""

    stream: int
    source: str
    tuples: int
    arrived: int | None
    span_us: tuple[int, int] | None


class SourceWatch:
    """Remembers what waited after the previous batch; must see every batch of the run.

    Grows with the open sources.
    """

    def __init__(self) -> None:
        self._waited: dict[Place, int] = {}
        self._begun = False

    def committed(self, cut: Cut, backlog: Backlog | None) -> tuple[SourceBatch, ...]:
        """The arrivals of each source, in the order of the gate; sources that only wait last."""
        waiting = {} if backlog is None else backlog.rows
        taken = {(p.stream, p.track.order): p for p in cut.parts}
        found = []
        for place, part in taken.items():
            piece, live = part.slice, part.track.arrivals is not None
            tuples, span_us = piece.stop - piece.new_from, (piece.low_us, piece.high_us)
            found.append(
                SourceBatch(
                    stream=part.stream,
                    source=part.track.source.id,
                    tuples=tuples,
                    arrived=self._arrived(place, tuples, waiting) if live else None,
                    span_us=span_us if span_us[0] <= span_us[1] else None,
                )
            )
        for place, (source, _) in waiting.items():
            if place not in taken:
                arrived = self._arrived(place, 0, waiting)
                found.append(SourceBatch(place[0], source, 0, arrived, None))
        self._waited = {place: rows for place, (_, rows) in waiting.items() if rows is not None}
        self._begun = True
        return tuple(found)

    def _arrived(
        self, place: Place, tuples: int, waiting: Mapping[Place, tuple[str, int | None]]
    ) -> int | None:
        """How many came since the batch before; what is not counted came with the batch."""
        if not self._begun:
            return None
        rows = waiting.get(place, ("", None))[1]
        return tuples if rows is None else max(tuples + rows - self._waited.get(place, 0), 0)


@dataclass(frozen=True)
class SubqueryArrivals:
    """What came to a subquery: of streams by their sources, and of other subqueries.

    `names` are those of the streams. `given` has, for each input that is the rows of another
    subquery, in their order, the name of that and how many there were.
    """

    names: Sequence[str] = ()
    brought: Sequence[SourceBatch] = ()
    given: Sequence[tuple[str, int]] = ()

    @property
    def live(self) -> bool:
        """Whether it is known what arrived since the batch before."""
        return any(one.arrived is not None for one in self.brought)


def inputs_of(
    subquery: Subquery, arriving: SubqueryArrivals, operation: Operation
) -> tuple[InputLoad, ...]:
    """What came to each input of a subquery."""
    edges, found = iter(arriving.given), []
    for number, prefix in enumerate(subquery.prefixes):
        side = operation.side(number)
        if isinstance(prefix.origin, Edge):
            name, rows = next(edges)
            arrived = rows if arriving.live else None
            found.append(InputLoad(number, name, None, rows, arrived, side=side))
            continue
        found += [
            InputLoad(
                input=number,
                stream=arriving.names[one.stream],
                source=one.source,
                tuples=one.tuples,
                arrived=one.arrived,
                span_us=one.span_us,
                side=side,
            )
            for one in arriving.brought
            if one.stream == prefix.origin
        ]
    return tuple(found)


def given_to(subquery: Subquery, plan: Plan, outcomes: Outcomes) -> list[tuple[str, int]]:
    """The rows that other subqueries gave to the inputs of one in a batch."""
    edges = [p.origin for p in subquery.prefixes if isinstance(p.origin, Edge)]
    return [
        (
            plan.subqueries[edge.subquery].name,
            sum(outcome.pieces[edge.port].count for outcome in outcomes[edge.subquery]),
        )
        for edge in edges
    ]
