"""Random graphs of operators over random streams, and random ways to run them.

A graph is a list of steps. Each takes relations that are there, the streams first, and adds what
it makes of them; every relation has the integer columns k and v, so that any step can follow any
other. The texts of steps are SQL expressions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import sqlglot
from hypothesis import strategies as st
from sqlglot import exp

from tidegate.operate.process import Process
from tidegate.plan.method import AUTO, METHODS
from tidegate.plan.physical import OPERATOR_SET, STRATEGIES
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.stream import Stream, Windowed
from tidegate.schema import TIME
from tidegate.testing import STEPS

SCHEMA = pa.schema([("ts", TIME), ("k", pa.int64()), ("v", pa.int64())])

MOST_STREAMS = 3
MOST_SOURCES = 2
MOST_STEPS = 5
MOST_OUTPUTS = 3
MOST_ROWS = 40
MOST_INSTANCES = 5
BUCKETS = 8
CROWD = 1500
"""Relations that may have more rows than this are not joined or spread over windows any more."""

PAUSE = timedelta(microseconds=3)

Line = tuple[int, int | None, int | None]
Call = tuple[str, str | None]
"""The kind of an aggregate and its argument."""


class Step(Protocol):
    """One operator of a graph."""

    def add(self, pool: list[Stream]) -> None:
        """Put what it makes of the relations at their end."""


@dataclass(frozen=True)
class Where:
    of: int
    condition: str

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].where(sql(self.condition)))


@dataclass(frozen=True)
class Select:
    of: int
    k: str
    v: str

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].select(k=sql(self.k), v=sql(self.v)))


@dataclass(frozen=True)
class Split:
    """Adds a relation for each condition and one for the rest."""

    of: int
    conditions: tuple[str, ...]

    def add(self, pool: list[Stream]) -> None:
        pool.extend(pool[self.of].split(*(sql(c) for c in self.conditions)))


@dataclass(frozen=True)
class UnionAll:
    of: tuple[int, ...]

    def add(self, pool: list[Stream]) -> None:
        sides = [pool[i] for i in self.of]
        narrow = [s.select("k", "v") if "w" in s.columns else s for s in sides]
        pool.append(narrow[0].union(*narrow[1:]))


@dataclass(frozen=True)
class Groups:
    """What an aggregate computes: v, k where it is no key, and sometimes w, which may be a key."""

    key: str | None
    calls: tuple[tuple[str, Call], ...]
    time: str | None = None

    def of(self, windows: Windowed) -> Stream:
        keys = {"k": self.key, "w": self.time}
        grouped = windows.group_by(**{n: sql(e) for n, e in keys.items() if e is not None})
        return grouped.agg(**{name: call_of(call) for name, call in self.calls})


@dataclass(frozen=True)
class Windows:
    of: int
    range_us: int
    slide_us: int
    groups: Groups

    def add(self, pool: list[Stream]) -> None:
        windows = pool[self.of].window(f"{self.range_us} us", slide=f"{self.slide_us} us")
        pool.append(self.groups.of(windows))


@dataclass(frozen=True)
class TupleWindows:
    of: int
    rows: int
    slide: int
    groups: Groups

    def add(self, pool: list[Stream]) -> None:
        pool.append(self.groups.of(pool[self.of].window(rows=self.rows, slide=self.slide)))


@dataclass(frozen=True)
class First:
    """The first rows of each window, or all of them in another order."""

    of: int
    limit: int | None
    by: str
    descending: bool

    def add(self, pool: list[Stream]) -> None:
        stream = pool[self.of]
        if self.limit is None:
            pool.append(stream.order_by(sql(self.by), descending=self.descending))
        else:
            pool.append(stream.top(self.limit, sql(self.by), self.descending))


@dataclass(frozen=True)
class Pairs:
    """A join; each side has a window of time in microseconds, or of rows."""

    left: int
    right: int
    within_us: tuple[int | None, int | None]
    rows: tuple[int | None, int | None]
    on: str
    k: str
    v: str

    def add(self, pool: list[Stream]) -> None:
        times = [None if us is None else f"{us} us" for us in self.within_us]
        joined = pool[self.left].join(
            pool[self.right], on=sql(self.on), within=(times[0], times[1]), rows=self.rows
        )
        pool.append(joined.select(k=sql(self.k), v=sql(self.v)))


class Changes(Process):
    """How much the value of a key differs from the one before it."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.last: dict[str, int] = {}

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> Iterator[dict[str, Any]]:
        for key in keys:
            before = self.last.get(str(key), 0)
            if tuple.v is not None and tuple.v != before:
                self.last[str(key)] = tuple.v
                yield {"k": key, "v": tuple.v - before}


class Pauses(Process):
    """How many tuples of a bucket came before a pause, told by a timer."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.count = 0
        self.newest: datetime | None = None

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> None:
        self.count += 1
        self.newest = tuple.ts
        self.wake(tuple.ts + PAUSE)

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        if self.newest is not None and ts - self.newest == PAUSE:
            yield {"k": self.bucket, "v": self.count}
            self.count = 0


class Dealt(Process):
    """Each bucket keeps every so many-th of all tuples, and compares all with the newest kept."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.seen = 0
        self.kept: int | None = None

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> Iterator[dict[str, Any]]:
        if self.kept is not None and self.kept == tuple.k:
            yield {"k": tuple.k, "v": tuple.v}
        if self.seen % self.buckets == self.bucket:
            self.kept = tuple.k
        self.seen += 1


@dataclass(frozen=True)
class Own:
    """An operator of the user's own."""

    of: int
    factory: type[Process]
    key: str | None

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].process(self.factory, keys=self.key))


@dataclass(frozen=True)
class Graph:
    """Streams, the steps over them, and which relations are put out."""

    streams: tuple[tuple[tuple[Line, ...], ...], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def tables(self) -> dict[str, list[pa.Table]]:
        """The sources of each stream by its name."""
        return {
            f"s{i}": [table_of(lines) for lines in sources]
            for i, sources in enumerate(self.streams)
        }

    def build(self, streams: Sequence[Stream]) -> dict[str, Stream]:
        """The outputs by name, over these streams."""
        pool = list(streams)
        for step in self.steps:
            step.add(pool)
        return {f"out{i}": pool[i] for i in self.outputs}


@dataclass(frozen=True)
class Way:
    """One way to run a graph; at a step of a batch, `crash`, it may fail and be started again.

    `strategy` cuts it into subqueries; joins are done by `method`.
    """

    batch_rows: int
    instances: int
    switches: tuple[tuple[int, int], ...] = ()
    crash: tuple[str, int] | None = None
    strategy: str = OPERATOR_SET
    method: str = AUTO


def sql(text: str) -> Expression:
    return Expression(sqlglot.parse_one(text, dialect="spark"))


def call_of(call: Call) -> AggregateCall:
    kind, argument = call
    arguments: tuple[exp.Expression, ...] = () if argument is None else (sql(argument).node,)
    return AggregateCall(kind, arguments, 0.5 if kind == "quantile" else None)


def table_of(lines: Sequence[Line]) -> pa.Table:
    """The rows of a source; event times are numbers of microseconds."""
    columns = [[line[i] for line in lines] for i in range(3)]
    times = pa.array(columns[0], pa.int64()).cast(TIME)
    return pa.table([times, *(pa.array(c, pa.int64()) for c in columns[1:])], schema=SCHEMA)


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
        step = Pairs(left, right, within, rows, on, self.pick(PAIRED), self.pick(PAIRED))
        most = sizes[0] * sizes[1] if True in sides else 3 * (sizes[0] + sizes[1])
        self.put(step, Shape(most))

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
