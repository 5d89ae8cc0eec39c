"""A whole simulated course from one seed: query, data, and lives of a driver with their faults.

A course has a query of one to three steps or one of those that have everything, one or two streams
of one or two sources, each of 10 to 30 rows, and as many starts of a driver as faults and one more.
A driver whose fault does not strike is often stopped after some batches, so that those after it
have work left; the batches are the smaller the more starts there are.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.property.graphs import CELLS, GRAPHS, Shape, _Drawing
from tests.property.steps import Graph, Line, Split, Step
from tests.simulation import data, fault
from tests.simulation.data import StreamData
from tests.simulation.fault import Fault, Refuses, Replaced, Rotated
from tests.simulation.place import CALLED
from tidegate.elastic import handover
from tidegate.plan.join.method import AUTO, METHODS
from tidegate.plan.physical import STRATEGIES
from tidegate.testing.simulation.fault import Fails

MOST_INSTANCES = 4
STEPS_OF_A_BATCH = 160
MOST_REQUESTS = 8
MOST_BATCHES = 6
"""Of the whole input in a course without faults; with faults there are some more."""
LONG_US = 3_600_000_000
"""Longer than any course: all states are kept."""


@dataclass(frozen=True)
class Start:
    """One start of a driver, and what goes wrong in it; None where nothing does.

    `asked` says by its batches whether somebody asks for other owners of buckets: what a generator
    with that seed draws. After so many `batches` of its own somebody stops it, None for never.
    """

    batch_rows: int
    instances: int
    switches: tuple[tuple[int, int], ...]
    method: str
    follow: bool = False
    fault: Fault | None = None
    asked: tuple[int | None, ...] = ()
    handover: str = handover.AUTO
    keep_us: int | None = None
    batches: int | None = None


@dataclass(frozen=True)
class Scenario:
    """All that a seed decides but the order of threads; the last start has no fault."""

    seed: int
    graph: Graph
    streams: tuple[StreamData, ...]
    strategy: str
    format: str
    starts: tuple[Start, ...]

    @property
    def faults(self) -> list[Fault]:
        return [start.fault for start in self.starts if start.fault is not None]

    @property
    def follow(self) -> bool:
        """Whether input grows while the drivers run; the last one reads it to its end."""
        return any(start.follow for start in self.starts)

    def with_starts(self, starts: Sequence[Start]) -> Scenario:
        return replace(self, starts=tuple(starts))


class _Drawn(_Drawing):
    """Steps drawn from a seeded generator instead of Hypothesis."""

    def __init__(self, chance: random.Random, shapes: list[Shape]) -> None:
        super().__init__(None, shapes)  # type: ignore[arg-type]
        self.chance = chance

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.chance.choice(choices)


def scenario(seed: int, faults: int = 5, kinds: Sequence[type[Fault]] = fault.KINDS) -> Scenario:
    """What a seed means; with faults of some kinds only, it means something else."""
    chance = random.Random(f"scenario {seed}")
    streams, steps, outputs = _graph(chance)
    disorder_us = chance.choice((0, 0, 4))
    given = tuple(
        data.drawn(chance, f"s{i}", sources, disorder_us) for i, sources in enumerate(streams)
    )
    graph = Graph(tuple(s.sources for s in given), steps, outputs)
    rows = sum(s.rows for s in given)
    format = chance.choice(("parquet", "csv", "json", CALLED))
    follow = all(s.can_grow for s in given) and chance.random() < 0.7
    starts = []
    keeping = random.Random(f"keep {seed}")
    kept = keeping.choice(((None,), (LONG_US,), (None, LONG_US, 2_000)))
    for number in range(faults + 1):
        start = _start(chance, rows, faults)
        start = _with_requests(start, random.Random(f"requests {seed} {number}"))
        start = replace(start, keep_us=keeping.choice(kept))
        if number < faults:
            end = None if 3 * number > 2 * faults else 1
            stop = random.Random(f"stop {seed} {number}").choice((1, 1, 2, 3, end))
            length = STEPS_OF_A_BATCH * min(stop or MOST_BATCHES, faults + 1 - number)
            drawn = fault.drawn(chance, length, kinds)
            if isinstance(drawn, Refuses) and format != CALLED:
                drawn = Fails(chance.randint(1, 60), errno.EIO, "/out")
            if isinstance(drawn, Rotated) and not follow:
                drawn = Replaced(chance.randint(1, max(2, length)), "longer", drawn.choice)
            stop = None if isinstance(drawn, Rotated) else stop
            start = replace(start, follow=follow, fault=drawn, batches=stop)
        starts.append(start)
    return Scenario(
        seed,
        graph,
        given,
        chance.choice(STRATEGIES),
        format,
        tuple(starts),
    )


def _start(chance: random.Random, rows: int, faults: int) -> Start:
    batches = chance.randint(2, MOST_BATCHES) + faults // 2
    switches = {chance.randrange(6): chance.randint(1, MOST_INSTANCES) for _ in range(2)}
    return Start(
        batch_rows=max(1, rows // batches),
        instances=chance.randint(1, MOST_INSTANCES),
        switches=tuple(sorted(switches.items())) if chance.random() < 0.3 else (),
        method=chance.choice((AUTO, *METHODS)),
    )


def _with_requests(start: Start, chance: random.Random) -> Start:
    """A start with requests before some of its batches; they change nothing else of a seed."""
    share = chance.choice((0.0, 0.5, 1.0))
    asked = tuple(
        chance.randrange(10**6) if chance.random() < share else None for _ in range(MOST_REQUESTS)
    )
    way = chance.choice((handover.AUTO, handover.STATE, handover.WINDOW))
    return replace(start, asked=asked, handover=way)


def _graph(
    chance: random.Random,
) -> tuple[list[list[tuple[Line, ...]]], tuple[Step, ...], tuple[int, ...]]:
    """Rows of streams, and steps over them: drawn, or those of a graph that has everything."""
    if chance.random() < 0.25:
        steps = GRAPHS[chance.choice(sorted(GRAPHS))]
        relations = 2 + sum(len(s.conditions) + 1 if isinstance(s, Split) else 1 for s in steps)
        outputs = sorted(chance.sample(range(2, relations), k=min(2, relations - 2)))
        return [_sources(chance) for _ in range(2)], steps, tuple(outputs)
    streams = [_sources(chance) for _ in range(chance.randint(1, 2))]
    drawing = _Drawn(chance, [Shape(sum(map(len, sources))) for sources in streams])
    for _ in range(chance.randint(1, 3)):
        drawing.step()
    count = len(drawing.shapes)
    others = chance.sample(range(count - 1), k=min(chance.choice((0, 0, 1, 2)), count - 1))
    return streams, tuple(drawing.steps), (count - 1, *others)


def _sources(chance: random.Random) -> list[tuple[Line, ...]]:
    origin = chance.choice((0, 1_700_000_000_000_000))
    return [_lines(chance, origin) for _ in range(chance.randint(1, 2))]


def _lines(chance: random.Random, origin: int) -> tuple[Line, ...]:
    ts, lines = origin + chance.randint(0, 6), []
    for step, k, v in chance.choices(CELLS, k=chance.randint(10, 30)):
        ts += step
        lines.append((ts, k, v))
    return tuple(lines)
