"""Random streams with disorder, and random courses of a run over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
)
from tests.property.queries import Query
from tidegate.testing import STEPS

MOST_SOURCES = 4
MOST_ROWS = 16
MOST_INSTANCES = 7

KEYS = (None, "a", "b", "", "\u00e9", "ab")
NUMBERS = (None, 0, 1, -5, 2**40)
FLOAT_KEYS = (None, 0.0, -0.0, 1.5, math.nan, -2.25)
INTEGERS = (None, 3, 0, 7, -11, 95, 120, 2**53 + 1, -(2**53))
POSITIVE = (None, 0.1, 0.7, 2.3, 9.9, 33.3, 812.0625, 5e-3)
SIGNED = (*POSITIVE, -0.1, -33.3, -0.0, 0.2)
WILD = (*SIGNED, math.nan, math.inf, -math.inf)
ORIGINS = (0, -37, 1_700_000_000_000_000, -2_208_988_800_000_000)


@dataclass(frozen=True)
class Scenario:
    """A query, its streams, and one way to run it."""

    query: Query
    streams: tuple[PlainStream, ...]
    course: Course
    positive: bool
    """Whether no float is negative or without end, so that sums keep their digits."""

    def __repr__(self) -> str:
        return f"Scenario({self.query.sql!r}, {self.streams!r}, {self.course!r})"


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
    return Scenario(query, streams, draw(courses(rows)), floats is POSITIVE)


@st.composite
def source_rows(draw: st.DrawFn, origin: int, floats: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows whose times go up, stand still, jump ahead, or fall back a little; some have none."""
    steps = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 17, 1000, -1, -2, -4, -9, None])
    cells = st.tuples(
        steps,
        st.sampled_from(KEYS),
        st.sampled_from(NUMBERS),
        st.sampled_from(FLOAT_KEYS),
        st.sampled_from(INTEGERS),
        st.sampled_from(floats),
    )
    now = origin + draw(st.integers(-6, 6))
    rows = []
    for step, *values in draw(st.lists(cells, max_size=MOST_ROWS)):
        ts = None if step is None else now + step
        now = now if ts is None else max(now, ts) if step > 0 else now
        rows.append(dict(zip(("ts", "k", "g", "f", "i", "x"), (ts, *values), strict=True)))
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
