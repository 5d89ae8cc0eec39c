"""Answers within an error: the same rows whatever happens to a run, and those of the plain twin."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.bounded import Bounded, bounded
from tests.oracle.query import PlainStream
from tests.property.course import AT_ONCE, Course, run
from tests.property.queries import SCHEMA, uris_of
from tests.property.strategies import courses
from tests.property.test_determinism import agree, bits, share
from tidegate.approx.error_scale import Absolute
from tidegate.elastic.handover import HANDOVERS
from tidegate.operate.aggregate.bounded.answer import BoundedAnswer
from tidegate.operate.aggregate.bounded.figures import RankedAnswer
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.user import Aggregator
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.aggregate import (
    AggregateCall,
    aggregate,
    count,
    mean,
    median,
    min_,
    quantile,
    stddev,
    sum_,
    var,
)
from tidegate.query.clause.error import ErrorBound
from tidegate.query.definition import StreamDef
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Input
from tidegate.query.output import single
from tidegate.query.window import TimeWindow
from tidegate.route.registry import partitioner_of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.testing import sampled_means

SOURCES, SOURCE_ROWS = 3, 500
RANGE_US, SLIDE_US, END_US = 1_000, 500, 2_000


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 97)
        yield


class Average(Aggregator):
    """The mean of whole numbers, as a user may write it."""

    state: ClassVar = {"total": pa.int64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> dict[str, Any]:
        return {"total": np.zeros(n, np.int64), "n": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, i: pa.Array) -> dict[str, Any]:
        np.add.at(state["total"], groups, i.fill_null(0).cast(pa.int64()).to_numpy())
        np.add.at(state["n"], groups, i.is_valid().to_numpy(zero_copy_only=False).astype(int))
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        for name, held in state.items():
            np.add.at(held, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(state["total"] / np.maximum(state["n"], 1))


class Alone(Average):
    """The same, for which nothing but the sample is kept."""

    exact_fallback = False


def average(tuples: list[tuple[Any, ...]]) -> float:
    """The same of tuples in a list."""
    there = [i for (i,) in tuples if i is not None]
    return sum(there) / max(len(there), 1)


@dataclass(frozen=True)
class Asked:
    """An aggregate over the streams below, within an error."""

    keys: tuple[str, ...]
    calls: dict[str, AggregateCall]
    bound: ErrorBound
    slide_us: int = SLIDE_US
    samples_means: bool = False

    def plan(self, choices: Choices | None = None) -> Plan:
        with sampled_means() if self.samples_means else nullcontext():
            return self._plan(choices)

    def _plan(self, choices: Choices | None) -> Plan:
        stream = StreamDef("s", uris_of("s", SOURCES), "ts", 0, None, SCHEMA)
        node = Aggregate(
            Input(stream),
            TimeWindow(RANGE_US, self.slide_us),
            tuple((key, column(key)) for key in self.keys),
            tuple(self.calls.items()),
            clauses=(self.bound,),
        )
        return lower(node, choices=choices)


def asked(bound: ErrorBound, *keys: str, **calls: AggregateCall) -> Asked:
    return Asked(keys, calls, bound)


def estimated(asked: Asked) -> Asked:
    """The same with means from samples."""
    return replace(asked, samples_means=True)


def overlapping(asked: Asked) -> Asked:
    """The same over windows of which a tuple is in 25."""
    return replace(asked, slide_us=RANGE_US // 25)


WIDE = ErrorBound(0.3, 0.8)
ASKED = {
    "quantiles": asked(WIDE, m=median("x"), high=quantile("i", 0.95), n=count()),
    "quantiles of groups": asked(WIDE, "k", m=median("x"), low=quantile("i", 0.1)),
    "quantiles of few values": asked(WIDE, "k", m=median("d"), high=quantile("d", 0.95)),
    "overlapping quantiles": overlapping(
        asked(WIDE, m=median("x"), n=count(), low=quantile("x", 0.1), few=median("d"))
    ),
    "overlapping quantiles of groups": overlapping(asked(WIDE, "k", m=median("d"))),
    "exact moments": asked(WIDE, "k", a=mean("i"), s=sum_("i"), d=stddev("i"), low=min_("x")),
    "moments": estimated(
        asked(replace(WIDE, budget_rows=300), a=mean("i"), s=sum_("i"), d=stddev("i"))
    ),
    "moments of groups": estimated(asked(WIDE, "k", a=mean("i"), v=var("i"), s=sum_("d"))),
    "a budget for groups": estimated(
        asked(ErrorBound(0.3, 0.8, 500, "mean"), "k", a=mean("i"), n=count("x"), m=median("i"))
    ),
    "more groups than budget": estimated(
        asked(ErrorBound(0.5, 0.8, 30), "x", a=mean("i"), m=median("i"))
    ),
    "a budget for some windows": asked(
        ErrorBound(0.3, 0.8, 180), "k", m=median("i"), few=median("d"), a=aggregate(Average(), "i")
    ),
    "a budget for overlapping quantiles": overlapping(
        asked(replace(WIDE, budget_rows=60), m=median("x"), low=quantile("x", 0.1))
    ),
    "users of more groups than budget": asked(
        ErrorBound(0.5, 0.8, 30), "x", a=aggregate(Average(), "i")
    ),
    "users": asked(replace(WIDE, budget_rows=400), a=aggregate(Average(), "i"), n=count()),
    "users of few values": asked(WIDE, a=aggregate(Average(), "d"), m=median("d")),
    "users alone with a budget": asked(replace(WIDE, budget_rows=400), a=aggregate(Alone(), "i")),
    "users alone": asked(WIDE, "k", a=aggregate(Alone(), "i"), n=count()),
    "users of groups": asked(replace(WIDE, metric="rms"), "k", a=aggregate(Average(), "i")),
    "an absolute error": asked(
        ErrorBound(Absolute(15.0), 0.8, 400), m=median("x"), a=aggregate(Average(), "i")
    ),
    "an absolute error of groups": asked(
        ErrorBound(Absolute(15.0), 0.8, 800, "mean"), "k", m=median("x"), few=median("d")
    ),
    "an absolute error without a budget": asked(
        ErrorBound(Absolute(20.0), 0.8), "k", m=median("x"), a=aggregate(Average(), "i")
    ),
    "moments within an absolute error": estimated(
        asked(ErrorBound(Absolute(10.0), 0.8), "k", a=mean("x"), s=sum_("x"), d=stddev("x"))
    ),
    "overlapping users": overlapping(asked(WIDE, a=aggregate(Average(), "i"), m=median("x"))),
    "overlapping users alone": overlapping(asked(WIDE, "k", a=aggregate(Alone(), "i"))),
}
"""With errors so large that samples of some hundred tuples will do, in some of the windows."""


@cache
def stream() -> PlainStream:
    """Values that a sample does well with, then some that it does not; NULL among both."""
    chance = random.Random(17)
    sources = []
    for _ in range(SOURCES):
        times = sorted(chance.randrange(END_US) for _ in range(SOURCE_ROWS))
        sources.append([_row(chance, ts) for ts in times])
    return PlainStream("s", sources)


def _row(chance: random.Random, ts: int) -> dict[str, Any]:
    wild = ts > END_US * 3 // 4 and chance.random() < 0.02
    i = None if chance.random() < 0.05 else chance.randint(50, 150) * (10**6 if wild else 1)
    row = dict.fromkeys(SCHEMA.names)
    k = chance.choice(["a", "a", "a", "b", None])
    d = None if chance.random() < 0.9 else i and i % 1000
    return row | {"ts": ts, "k": k, "i": i, "x": chance.uniform(-9, 99), "d": d}


@cache
def reference(name: str) -> list[tuple[Any, ...]]:
    return run(ASKED[name].plan(), [stream()], AT_ONCE).rows


def twin(plan: Plan) -> list[tuple[Any, ...]]:
    """What the query gives, plainly."""
    first, last = plan.subqueries[0], plan.subqueries[-1]
    operator = last.operator
    assert isinstance(operator, WindowAggregate | MergeWindows)
    assert isinstance(operator.answer, BoundedAnswer | RankedAnswer)
    spec, rules = operator.spec, operator.answer.answering
    names = {n: text.strip("`") for n, text in first.prefixes[0].sql_outputs}
    rows = [
        {**{n: row[of] for n, of in names.items()}, "ts": row["ts"], "src": src, "seq": seq}
        for src, source in enumerate(stream().sources)
        for seq, row in enumerate(source)
    ]
    users = {a.function.name: average for a in rules.answers}
    return bounded(Bounded(spec, rules, users), rows)


@pytest.mark.parametrize("name", ASKED)
def test_rows_are_those_of_the_twin(name: str) -> None:
    agree(reference(name), twin(ASKED[name].plan()))


def test_some_windows_are_answered_from_samples_and_some_are_not() -> None:
    exact = {name: {row[-1] for row in reference(name)} for name in ASKED}
    both = {"moments", "moments of groups", "users", "users of groups"}
    both |= {"an absolute error of groups", "an absolute error without a budget"}
    assert {name for name, found in exact.items() if found == {True, False}} >= both
    sampled = {"quantiles", "overlapping quantiles", "overlapping users", "users alone"}
    sampled |= {"a budget for groups", "a budget for overlapping quantiles", "an absolute error"}
    assert all(False in exact[name] for name in sampled)
    none = {"more groups than budget", "users of more groups than budget", "exact moments"}
    assert all(exact[name] == {True} for name in none)


@share(4, least=8)
@given(
    st.sampled_from(sorted(ASKED)),
    courses(SOURCES * SOURCE_ROWS),
    st.sampled_from(["hash", "hash", "shuffle", "pk", "cam"]),
    st.sampled_from([None, "map", "instance"]),
    st.sampled_from(HANDOVERS),
)
def test_rows_do_not_depend_on_the_run(
    name: str, course: Course, partitioner: str, partial: str | None, handover: str
) -> None:
    choices = Choices(partitioner=partitioner_of(partitioner), partial=partial)
    course = replace(course, handover=handover)
    found = run(ASKED[name].plan(choices), [stream()], course)
    assert bits(found.rows) == bits(reference(name))


@pytest.mark.parametrize("instances", [5, 32])
def test_rows_do_not_depend_on_the_instances(
    instances: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.property.course.BUCKETS", 64)
    name = "a budget for groups"
    found = run(ASKED[name].plan(), [stream()], Course(170, (), instances, ((2, 32), (5, 1))))
    assert bits(found.rows) == bits(reference(name))


RESULTS = """
CREATE STREAM busy AS
SELECT k, COUNT(*) AS n, SUM(i) AS s FROM s [RANGE 40 MICROSECONDS SLIDE 4 MICROSECONDS] GROUP BY k;
SELECT MEDIAN(b.n) AS m, AVG(b.n) AS a, COUNT(*) AS c
FROM (
  SELECT l.n FROM busy AS l [RANGE 0 SECONDS] JOIN busy AS r [RANGE 0 SECONDS] ON l.n > r.n
) AS b [RANGE 500 MICROSECONDS] WITH ERROR 30 PERCENT CONFIDENCE 80 PERCENT
"""


def test_samples_of_results_do_not_depend_on_the_run() -> None:
    """Rows of windows and joins have no place in a source: they are numbered in their instant."""
    source = StreamDef("s", uris_of("s", SOURCES), "ts", 0, None, SCHEMA)
    plan = lower(single(bind(read_script(RESULTS), {"s": source})))
    expected = run(plan, [stream()], AT_ONCE).rows
    assert {row[-1] for row in expected} >= {False}
    found = run(plan, [stream()], Course(170, (), 3, ((2, 5), (4, 2))))
    assert bits(found.rows) == bits(expected)
