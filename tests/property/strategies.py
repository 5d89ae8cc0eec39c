"""Random streams with disorder, and random courses of a run over them.

Hypothesis makes small scenarios and shrinks them; `crowded` makes large ones in which everything
happens, from a seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.oracle.query import PlainStream
from tests.property.course import (
    Append,
    Course,
    Crash,
    End,
    Event,
    Restart,
    Scale,
    Step,
    once,
)
from tests.property.queries import Query
from tidegate.testing import STEPS

MOST_SOURCES = 5
MOST_ROWS = 16
MOST_INSTANCES = 7

KEYS = (None, "a", "b", "", "\u00e9", "ab")
NUMBERS = (None, 0, 1, -5, 2**40)
FLOAT_KEYS = (None, 0.0, -0.0, 1.5, math.nan, -2.25)
INTEGERS = (None, 3, 0, 7, -11, 95, 120, 2**53 + 1, -(2**53))
POSITIVE = (None, 0.1, 0.7, 2.3, 9.9, 33.3, 812.0625, 5e-3)
SIGNED = (*POSITIVE, -0.1, -33.3, -0.0, 0.2, 1e16, -1e16, 5e-324)
WILD = (*SIGNED, math.nan, math.inf, -math.inf)
ORIGINS = (0, -37, 1_700_000_000_000_000, -2_208_988_800_000_000)
STEPS_US = (0, 0, 1, 1, 2, 3, 5, 17, 1000, -1, -2, -4, -9, None)
FLAGS = (None, True, False)
DECIMALS = (None, Decimal("1.005"), Decimal("-3.250"), Decimal("999999999.999"))
DAYS = (None, date(1969, 12, 31), date(2024, 2, 29))
COLUMNS = ("ts", "k", "g", "f", "i", "x", "b", "d", "day")


@dataclass(frozen=True)
class Scenario:
    """A query, its streams, and one way to run it."""

    query: Query
    streams: tuple[PlainStream, ...]
    course: Course

    @property
    def rows(self) -> int:
        """How many tuples are read."""
        return sum(len(rows) for s in once(self.streams) for rows in s.sources)


@st.composite
def scenarios(draw: st.DrawFn, queries: dict[str, Query]) -> Scenario:
    query = queries[draw(st.sampled_from(sorted(queries)))]
    floats = draw(st.sampled_from([POSITIVE, SIGNED, WILD]))
    disorder = draw(st.sampled_from([0, 0, 3, 8]))
    origin = draw(st.sampled_from(ORIGINS))
    streams = tuple(
        PlainStream(
            name,
            draw(st.lists(source_rows(origin, floats), min_size=1, max_size=MOST_SOURCES)),
            disorder,
        )
        for name in query.names
    )
    rows = sum(len(source) for stream in streams for source in stream.sources)
    return Scenario(query, streams, draw(courses(rows)))


@st.composite
def source_rows(draw: st.DrawFn, origin: int, floats: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows whose times go up, stand still, jump ahead, or fall back a little; some have none."""
    cells = st.tuples(
        st.sampled_from(STEPS_US),
        st.sampled_from(KEYS),
        st.sampled_from(NUMBERS),
        st.sampled_from(FLOAT_KEYS),
        st.sampled_from(INTEGERS),
        st.sampled_from(floats),
        st.sampled_from(FLAGS),
        st.sampled_from(DECIMALS),
        st.sampled_from(DAYS),
    )
    return timed(origin + draw(st.integers(-6, 6)), draw(st.lists(cells, max_size=MOST_ROWS)))


def timed(start: int, cells: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Rows from cells whose first is the step from the newest time so far; None is no time."""
    newest = start
    rows = []
    for step, *values in cells:
        ts = None if step is None else newest + step
        newest = newest if ts is None else max(newest, ts)
        rows.append(dict(zip(COLUMNS, (ts, *values), strict=True)))
    return rows


@st.composite
def courses(draw: st.DrawFn, rows: int) -> Course:
    """Few batches of any size; whatever else may happen happens between them."""
    batches = draw(st.integers(1, 6))
    switches = draw(st.dictionaries(st.integers(0, 5), _instances(), max_size=2))
    return Course(
        -(-max(rows, 1) // batches),
        tuple(draw(st.lists(_events(), max_size=12))),
        draw(_instances()),
        tuple(sorted(switches.items())),
    )


def _instances() -> st.SearchStrategy[int]:
    return st.integers(1, MOST_INSTANCES)


def _events() -> st.SearchStrategy[Event]:
    sources = st.integers(0, 2 * MOST_SOURCES - 1)
    maybe = st.none() | _instances()
    return st.one_of(
        st.builds(Append, sources, st.integers(1, 8)),
        st.builds(Append, sources, st.integers(1, 8)),
        st.builds(End, sources),
        st.just(Step()),
        st.just(Step()),
        st.builds(Scale, _instances()),
        st.builds(Restart, maybe),
        st.builds(Crash, st.sampled_from(STEPS), maybe),
    )


def crowded(query: Query, seed: str) -> Scenario:
    """Many rows, several sources, and every kind of event, all from a seed."""
    chance = random.Random(seed)
    floats = chance.choice([POSITIVE, SIGNED, WILD])
    disorder = chance.choice([0, 3, 8])
    origin = chance.choice(ORIGINS)
    streams = tuple(
        PlainStream(
            name,
            [_many_rows(chance, origin, floats) for _ in range(chance.randint(1, MOST_SOURCES))],
            disorder,
        )
        for name in query.names
    )
    rows = sum(len(source) for stream in streams for source in stream.sources)
    events = [_event(chance) for _ in range(16)]
    switches = {chance.randrange(8): chance.randint(1, MOST_INSTANCES) for _ in range(2)}
    course = Course(
        -(-max(rows, 1) // chance.randint(3, 8)),
        tuple(events),
        chance.randint(1, 4),
        tuple(sorted(switches.items())),
    )
    return Scenario(query, streams, course)


def _many_rows(
    chance: random.Random, origin: int, floats: Sequence[float | None]
) -> list[dict[str, Any]]:
    pools = (STEPS_US, KEYS, NUMBERS, FLOAT_KEYS, INTEGERS, floats, FLAGS, DECIMALS, DAYS)
    cells = [tuple(chance.choice(p) for p in pools) for _ in range(chance.randint(0, 30))]
    return timed(origin + chance.randint(-6, 6), cells)


def _event(chance: random.Random) -> Event:
    kind = chance.choice([Append, Append, Append, Step, Step, Step, End, Scale, Restart, Crash])
    source, instances = chance.randrange(2 * MOST_SOURCES), chance.randint(1, 4)
    if kind is Append:
        return Append(source, chance.randint(1, 20))
    if kind is End:
        return End(source)
    if kind is Scale:
        return Scale(instances)
    if kind is Restart:
        return Restart(chance.choice([None, instances]))
    if kind is Crash:
        return Crash(chance.choice(STEPS), chance.choice([None, instances]))
    return Step()
