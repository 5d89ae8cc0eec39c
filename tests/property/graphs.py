"""Random graphs of operators over random streams, and random ways to run them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.property.steps import (
    BUCKETS,
    Call,
    Changes,
    Dealt,
    First,
    Graph,
    Groups,
    Line,
    Own,
    Pairs,
    Pauses,
    Select,
    Split,
    Step,
    TupleWindows,
    UnionAll,
    Way,
    Where,
    Windows,
)
from tidegate.plan.join.method import METHODS
from tidegate.plan.physical import STRATEGIES
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.testing import STEPS

MOST_STREAMS = 3
MOST_SOURCES = 2
MOST_STEPS = 5
MOST_OUTPUTS = 3
MOST_ROWS = 40
MOST_INSTANCES = 5
CROWD = 1500
"""Relations that may have more rows than this are not joined or spread over windows any more."""

VALUES: tuple[str, ...] = (
    "v",
    "k",
    "k + v",
    "v - k",
    "v * 2",
    "abs(v)",
    "coalesce(k, 7)",
    "v % 3",
    "-v",
    "CASE WHEN k > 1 THEN v ELSE k END",
    "CASE WHEN v < 3 THEN k END",
)
KEYS = ("k", "k", "v", "v % 2", "coalesce(k, v)")
CONDITIONS: tuple[str, ...] = (
    "v > 1",
    "k = 1",
    "k IS NULL",
    "v % 2 = 0 OR k = 0",
    "NOT k < v",
    "v BETWEEN 0 AND 3",
    "k IS NOT NULL AND v < 4",
    "abs(k - v) <= 2",
)
CALLS: tuple[Call, ...] = (
    ("count", None),
    ("sum", "v"),
    ("last", "v"),
    ("first", "v"),
    ("min", "v"),
    ("max", "k"),
    ("count", "v"),
    ("distinct", "v"),
    ("sum", "k + v"),
)
TIME_WINDOWS = ((4, 4), (1, 1), (6, 2), (5, 3), (8, 4), (10, 4), (12, 12), (30, 10))
TUPLE_WINDOWS = ((2, 1), (1, 1), (2, 2), (3, 1), (3, 2), (4, 4), (5, 3))
ON = (
    "left.k = right.k",
    "abs(left.v - right.v) <= 1",
    "left.k = right.k AND left.v < right.v",
    "left.v BETWEEN right.k - 1 AND right.k + 1",
    "left.k <> right.v OR left.v IS NULL",
    "left.k < right.k AND left.v % 2 = 0",
    "TRUE",
)
PAIRED = (
    "left.k",
    "right.v",
    "left.v",
    "right.k",
    "left.v - right.v",
    "left.k + right.k",
    "coalesce(left.v, right.k)",
)
ALONE = ("left.k", "left.v", "left.v - left.k")
OUTER = ("left", "right", "full", "semi", "anti")
STEPS_US = (0, 0, 0, 1, 1, 2, 5)
ORIGINS = (0, -17, 1_700_000_000_000_000)
CELLS = [
    (step, k, v) for step in STEPS_US for k in (0, 1, 2, None) for v in (0, 1, 2, 3, 5, -2, None)
]

TIMELY = "time"
COUNTED = "tuples"


@dataclass(frozen=True)
class Shape:
    """What the next step must know of a relation; `most` is how many rows it has at most."""

    most: int
    window: str | None = None
    extra: tuple[str, ...] = ()
    ordered: bool = False

    @property
    def times(self) -> tuple[str, ...]:
        return (EVENT_TIME,) if self.window is None else WINDOW


@dataclass
class _Drawing:
    """A graph being drawn."""

    draw: st.DrawFn
    shapes: list[Shape]
    steps: list[Step] = field(default_factory=list)

    def step(self) -> None:
        kinds = [self.where, self.select, self.split, self.union, *[self.rows] * 3]
        if self.small():
            kinds += [*[self.windows] * 4, *[self.pairs] * 3, *[self.own] * 2]
        if self.unordered():
            kinds += [self.first] * 3
        self.pick(kinds)()

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def relation(self, choices: Sequence[int] | None = None) -> int:
        """One that is there, the newest more often than others, so that steps follow each other."""
        known = choices or range(len(self.shapes))
        return int(self.pick((*[known[-1]] * len(known), *known)))

    def small(self) -> list[int]:
        return [i for i, s in enumerate(self.shapes) if s.most <= CROWD]

    def unordered(self) -> list[int]:
        return [i for i, s in enumerate(self.shapes) if s.window == TIMELY and not s.ordered]

    def put(self, step: Step, *shapes: Shape) -> None:
        self.steps.append(step)
        self.shapes.extend(shapes)

    def where(self) -> None:
        of = self.relation()
        self.put(Where(of, self.condition(of)), self.shapes[of])

    def condition(self, of: int) -> str:
        known = CONDITIONS
        if self.shapes[of].window is not None:
            known += ("window_start = window_end", "window_start < window_end AND v > 0")
        return str(self.pick(known))

    def select(self) -> None:
        of = self.relation()
        shape = self.shapes[of]
        step = Select(of, self.pick(VALUES), self.pick(VALUES))
        self.put(step, Shape(shape.most, shape.window, (), shape.ordered))

    def split(self) -> None:
        of = self.relation()
        conditions = tuple(self.condition(of) for _ in range(self.pick((1, 2))))
        self.put(Split(of, conditions), *[self.shapes[of]] * (len(conditions) + 1))

    def union(self) -> None:
        of = tuple(self.relation() for _ in range(self.pick((2, 2, 3))))
        self.put(UnionAll(of), Shape(sum(self.shapes[i].most for i in of)))

    def groups(self, of: int) -> Groups:
        key = self.pick((None, *KEYS))
        names = ("v",) if key is not None else ("k", "v")
        calls = [(name, self.pick(CALLS)) for name in names]
        time = self.shapes[of].times[-1]
        more: tuple[Call | None, ...] = (None, None, ("key", time), ("max", time), ("first", time))
        more += (("distinct", time), ("quantile", "v"), ("mean", "v"))
        extra = self.pick(more)
        if extra == ("key", time):
            return Groups(key, tuple(calls), time)
        return Groups(key, tuple(calls if extra is None else [*calls, ("w", extra)]))

    def windows(self) -> None:
        of = self.relation(self.small())
        range_us, slide_us = self.pick(TIME_WINDOWS)
        groups = self.groups(of)
        most = self.shapes[of].most * -(-range_us // slide_us)
        self.put(Windows(of, range_us, slide_us, groups), Shape(most, TIMELY, _extra(groups)))

    def rows(self) -> None:
        of = self.relation()
        rows, slide = self.pick(TUPLE_WINDOWS)
        groups = self.groups(of)
        shape = Shape(self.shapes[of].most, COUNTED, _extra(groups))
        self.put(TupleWindows(of, rows, slide, groups), shape)

    def own(self) -> None:
        of = self.relation(self.small())
        factory, key = self.pick(((Changes, "k"), (Pauses, "k"), (Changes, "v"), (Dealt, None)))
        most = self.shapes[of].most * (1 if factory is not Dealt else BUCKETS)
        self.put(Own(of, factory, key), Shape(most))

    def first(self) -> None:
        of = self.relation(self.unordered())
        shape = self.shapes[of]
        by = self.pick(("v", "k", "v % 2", *shape.extra))
        step = First(of, self.pick((1, 2, 3, None)), by, self.pick((True, False)))
        self.put(step, Shape(shape.most, shape.window, shape.extra, True))

    def pairs(self) -> None:
        left, right = self.relation(self.small()), self.relation(self.small())
        sizes = self.shapes[left].most, self.shapes[right].most
        timely = (True, False) if sizes[0] * sizes[1] <= 4 * CROWD else (False,)
        sides = [self.pick(timely) for _ in range(2)]
        within = tuple(self.pick((2, 0, 1, 5, 20)) if side else None for side in sides)
        rows = tuple(None if side else self.pick((2, 1, 3)) for side in sides)
        times = [shape.times[-1] for shape in (self.shapes[left], self.shapes[right])]
        on = self.pick((*ON, f"left.{times[0]} = right.{times[1]}", self.earlier(times)))
        how = self.pick(("inner", *OUTER)) if all(sides) else "inner"
        paired = PAIRED if how not in ("semi", "anti") else ALONE
        step = Pairs(left, right, within, rows, on, self.pick(paired), self.pick(paired), how)
        most = sizes[0] * sizes[1] if True in sides else 3 * (sizes[0] + sizes[1])
        self.put(step, Shape(most + sum(sizes)))

    def earlier(self, times: Sequence[str]) -> str:
        return f"left.k = right.k AND left.{times[0]} < right.{times[1]}"


def _extra(groups: Groups) -> tuple[str, ...]:
    return ("w",) if groups.time is not None or "w" in dict(groups.calls) else ()


@st.composite
def graphs(
    draw: st.DrawFn, most_steps: int = MOST_STEPS, most_outputs: int = MOST_OUTPUTS
) -> Graph:
    """Graphs of so many steps and outputs; the newest relation is always put out."""
    origin = draw(st.sampled_from(ORIGINS))
    sources = st.lists(_lines(origin), min_size=1, max_size=MOST_SOURCES).map(tuple)
    streams = tuple(draw(st.lists(sources, min_size=1, max_size=MOST_STREAMS)))
    shapes = [Shape(sum(len(lines) for lines in stream)) for stream in streams]
    drawing = _Drawing(draw, shapes)
    for _ in range(draw(st.integers(1, most_steps))):
        drawing.step()
    others = st.lists(
        st.sampled_from(range(len(shapes) - 1)), max_size=most_outputs - 1, unique=True
    )
    return Graph(streams, tuple(drawing.steps), (len(shapes) - 1, *draw(others)))


@st.composite
def _lines(draw: st.DrawFn, origin: int) -> tuple[Line, ...]:
    """Rows whose times go up or stand still."""
    ts = origin + draw(st.integers(0, 6))
    least = draw(st.sampled_from((0, 0, 10, 25)))
    lines = []
    for step, k, v in draw(
        st.lists(st.sampled_from(CELLS), min_size=least, max_size=MOST_ROWS if least else 8)
    ):
        ts += step
        lines.append((ts, k, v))
    return tuple(lines)


@st.composite
def ways(draw: st.DrawFn) -> Way:
    """Batches of few or many rows, instances, switches between them, and perhaps a crash."""
    instances = st.integers(1, MOST_INSTANCES)
    switches = draw(st.dictionaries(st.integers(1, 6), instances, max_size=2))
    return Way(
        draw(st.sampled_from((1000, 30, 12, 5))),
        draw(instances),
        tuple(sorted(switches.items())),
        draw(st.none() | st.tuples(st.sampled_from(STEPS), st.integers(0, 4))),
        draw(st.sampled_from(STRATEGIES)),
        draw(st.sampled_from(METHODS)),
    )


COUNT = Groups("k", (("v", ("count", None)),))
ENDS = Groups(None, (("k", ("first", "k")), ("v", ("last", "v")), ("w", ("sum", "v"))))
TOTAL = Groups("k", (("v", ("sum", "v")), ("w", ("distinct", "v"))))

GRAPHS: dict[str, tuple[Step, ...]] = {
    "windows over windows over windows": (
        Windows(0, 4, 2, COUNT),
        Windows(2, 12, 4, TOTAL),
        Windows(3, 12, 12, ENDS),
    ),
    "pairs of windows": (
        Windows(0, 4, 4, COUNT),
        Windows(1, 6, 2, TOTAL),
        Pairs(2, 3, (4, 9), (None, None), "left.k = right.k", "right.v", "left.v"),
    ),
    "windows over pairs over tuple windows": (
        TupleWindows(0, 3, 1, TOTAL),
        Pairs(2, 1, (3, None), (None, 2), "abs(left.v - right.v) <= 2", "left.k", "right.v"),
        Windows(3, 6, 3, ENDS),
    ),
    "pairs of pairs": (
        Pairs(0, 1, (2, 2), (None, None), "left.k = right.k", "left.k", "right.v"),
        Pairs(2, 1, (None, 1), (2, None), "left.v < right.v", "left.v", "right.k"),
        Pairs(0, 3, (None, None), (1, 3), "TRUE", "left.k", "right.v"),
    ),
    "windows over outer joins of outer joins": (
        Pairs(0, 1, (3, 5), (None, None), "left.k = right.k", "left.k", "right.v", "left"),
        Pairs(2, 1, (4, 2), (None, None), "left.v < right.v", "left.v", "right.k", "full"),
        Windows(3, 6, 2, TOTAL),
        Pairs(1, 0, (2, 2), (None, None), "left.v = right.v", "left.v", "left.k", "anti"),
        UnionAll((5, 2)),
        TupleWindows(6, 2, 1, ENDS),
    ),
    "outer joins by ranges": (
        Pairs(
            0, 1, (5, 2), (None, None), "abs(left.v - right.v) <= 1", "left.k", "right.v", "right"
        ),
        Pairs(
            0,
            2,
            (4, 4),
            (None, None),
            "left.v BETWEEN right.v - 1 AND right.v",
            "left.k",
            "left.v",
            "semi",
        ),
        Pairs(3, 1, (4, 4), (None, None), "abs(left.v - right.v) < 1", "left.k", "right.v", "left"),
        Windows(4, 4, 4, COUNT),
    ),
    "tuple windows over a diamond of windows": (
        Windows(0, 6, 2, TOTAL),
        First(2, 2, "v", True),
        Where(2, "v > 2"),
        UnionAll((4, 3, 1)),
        TupleWindows(5, 2, 1, ENDS),
    ),
    "own operators over windows over own operators": (
        Own(0, Changes, "k"),
        Windows(2, 6, 2, TOTAL),
        Own(3, Pauses, "k"),
        UnionAll((4, 1)),
        Own(5, Dealt, None),
    ),
    "a split that meets itself": (
        UnionAll((0, 1)),
        Split(2, ("v > 1", "k IS NULL")),
        Windows(3, 5, 5, COUNT),
        TupleWindows(5, 2, 2, COUNT),
        Pairs(6, 7, (10, 10), (None, None), "left.v >= right.v", "left.k", "left.v - right.v"),
    ),
}
"""Steps over two streams in which operators of every kind stand above operators of every kind."""


def crowded(name: str, seed: int) -> tuple[Graph, Way]:
    """One of these graphs, all its relations put out, over many rows; all from a seed."""
    chance = random.Random(f"{name} {seed}")
    streams = tuple(
        tuple(_many_lines(chance) for _ in range(chance.randint(1, MOST_SOURCES))) for _ in range(2)
    )
    relations = 2 + sum(
        len(step.conditions) + 1 if isinstance(step, Split) else 1 for step in GRAPHS[name]
    )
    switches = {chance.randrange(1, 6): chance.randint(1, MOST_INSTANCES) for _ in range(2)}
    way = Way(
        chance.choice((7, 11, 25)),
        chance.randint(1, 4),
        tuple(sorted(switches.items())),
        (chance.choice(STEPS), chance.randrange(4)),
        STRATEGIES[seed % len(STRATEGIES)],
    )
    return Graph(streams, GRAPHS[name], tuple(range(2, relations))), way


def _many_lines(chance: random.Random) -> tuple[Line, ...]:
    ts, lines = chance.randint(-6, 6), []
    for step, k, v in chance.choices(CELLS, k=chance.randint(20, MOST_ROWS)):
        ts += step
        lines.append((ts, k, v))
    return tuple(lines)
