"""WITH BALANCE: the same rows whatever happens to a run, and those of the plain twin."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.balanced import Balanced, balanced
from tests.oracle.query import PlainStream
from tests.property.course import AT_ONCE, BUCKETS, Course, run
from tests.property.queries import SCHEMA, uris_of
from tests.property.strategies import courses
from tests.property.test_bounds import Average, average
from tests.property.test_determinism import agree, bits, share
from tidegate.elastic.handover import HANDOVERS
from tidegate.operate.aggregate.balanced.batch import BalancedAnswer
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.aggregate import (
    AggregateCall,
    aggregate,
    count,
    mean,
    median,
    quantile,
    stddev,
    sum_,
)
from tidegate.query.clause.balance import Balance
from tidegate.query.definition import StreamDef
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Input
from tidegate.query.window import TimeWindow
from tidegate.route.registry import partitioner_of

SOURCES, SOURCE_ROWS = 3, 700
RANGE_US, SLIDE_US, END_US = 1_000, 500, 2_000
WIDE = Balance(0.3, 0.8, cold_rows=3, trim="all")
"""So wide that samples of some ten or hundred tuples will do."""
WINDOW = TimeWindow(RANGE_US, SLIDE_US)

ASKED: dict[str, dict[str, AggregateCall]] = {
    "quantiles": {"m": median("x"), "low": quantile("i", 0.1), "n": count()},
    "users": {"a": aggregate(Average(), "i")},
    "both, and one that is folded": {
        "m": median("i"),
        "a": aggregate(Average(), "i"),
        "s": sum_("x"),
    },
    "few values": {"m": median("d"), "a": aggregate(Average(), "d"), "x": median("x")},
    "moments": {"s": sum_("i"), "a": mean("x"), "d": stddev("x"), "n": count(), "u": mean("d")},
}
FOLDED: dict[str, AggregateCall] = {"s": sum_("i"), "a": mean("d"), "d": stddev("x")}
"""What is exact unless TRIM ALL is asked for, whoever folds it."""


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 97)
        yield


def plan_of(
    calls: dict[str, AggregateCall],
    choices: Choices | None = None,
    window: TimeWindow = WINDOW,
    balance: Balance | None = WIDE,
) -> Plan:
    stream = StreamDef("s", uris_of("s", SOURCES), "ts", 0, None, SCHEMA)
    node = Aggregate(
        Input(stream),
        window,
        (("k", column("k")),),
        tuple(calls.items()),
        clauses=() if balance is None else (balance,),
    )
    return lower(node, choices=choices)


@cache
def stream() -> PlainStream:
    """A few large groups and some small ones; at the end values that no sample does well with."""
    chance = random.Random(23)
    sources = []
    for _ in range(SOURCES):
        times = sorted(chance.randrange(END_US) for _ in range(SOURCE_ROWS))
        sources.append([_row(chance, ts) for ts in times])
    return PlainStream("s", sources)


def _row(chance: random.Random, ts: int) -> dict[str, Any]:
    wild = ts > END_US * 3 // 4 and chance.random() < 0.02
    i = None if chance.random() < 0.05 else chance.randint(50, 150) * (10**6 if wild else 1)
    k = chance.choice(["a"] * 8 + ["b"] * 4 + ["c", "d", "e", None])
    row = dict.fromkeys(SCHEMA.names)
    d = None if chance.random() < 0.8 else i and i % 1000
    return row | {"ts": ts, "k": k, "i": i, "x": chance.uniform(5, 99), "d": d}


@cache
def reference(name: str) -> list[tuple[Any, ...]]:
    return run(plan_of(ASKED[name]), [stream()], AT_ONCE).rows


def twin(plan: Plan) -> list[tuple[Any, ...]]:
    """What the query gives, plainly."""
    (first,) = plan.subqueries
    operator = first.operator
    assert isinstance(operator, WindowAggregate)
    assert isinstance(operator.answer, BalancedAnswer)
    rules = operator.answer.rules
    names = {n: text.strip("`") for n, text in first.prefixes[0].sql_outputs}
    rows = [
        {**{n: row[of] for n, of in names.items()}, "ts": row["ts"], "src": src, "seq": seq}
        for src, source in enumerate(stream().sources)
        for seq, row in enumerate(source)
    ]
    users = {a.function.name: average for a in rules.answering.answers}
    numbers = frozenset(name for name, _ in rules.surveyed)
    asked = Balanced(
        operator.spec, rules.answering, users, rules.seed, BUCKETS, numbers, rules.thresholds
    )
    return balanced(asked, rows)


@pytest.mark.parametrize(
    ("balance", "trims"),
    [
        (replace(WIDE, cold_rows=300), {"a"}),
        (replace(WIDE, cold_rows=10_000), set()),
        (replace(WIDE, saving=0.99), set()),
        (replace(WIDE, cold_rows=None), {"a", "b"}),
    ],
)
def test_thresholds_say_what_is_trimmed(balance: Balance, trims: set[str]) -> None:
    plan = plan_of(ASKED["quantiles"], balance=balance)
    found = run(plan, [stream()], AT_ONCE).rows
    assert {row[2] for row in found if not row[-1]} == trims
    assert {row[2] for row in reference("quantiles") if not row[-1]} > trims
    agree(found, twin(plan))


@pytest.mark.parametrize("name", ASKED)
def test_rows_are_those_of_the_twin(name: str) -> None:
    agree(reference(name), twin(plan_of(ASKED[name])))


def test_large_groups_are_trimmed_and_small_ones_are_exact() -> None:
    for name in ASKED:
        assert {row[-1] for row in reference(name)} == {True, False}
    exact = {key: {r[-1] for r in reference("users") if r[2] == key} for key in "abcde"}
    assert exact["a"] == {True, False}
    assert exact["c"] == exact["d"] == exact["e"] == {True}


@share(4, least=8)
@given(
    st.sampled_from(sorted(ASKED)),
    courses(SOURCES * SOURCE_ROWS),
    st.sampled_from(["hash", "hash", "shuffle", "pk", "cam", "auto"]),
    st.sampled_from([None, "map"]),
    st.sampled_from(HANDOVERS),
)
def test_rows_do_not_depend_on_the_run(
    name: str, course: Course, partitioner: str, partial: str | None, handover: str
) -> None:
    choices = Choices(partitioner=partitioner_of(partitioner), partial=partial)
    course = replace(course, handover=handover)
    found = run(plan_of(ASKED[name], choices), [stream()], course)
    assert bits(found.rows) == bits(reference(name))


@pytest.mark.parametrize("partitioner", ["hash", "cam"])
@pytest.mark.parametrize("partial", ["map", "instance"])
def test_sums_and_means_are_exact_whoever_folds_them(partitioner: str, partial: str) -> None:
    choices = Choices(partitioner=partitioner_of(partitioner), partial=partial)
    exact = run(plan_of(FOLDED, balance=None), [stream()], AT_ONCE).rows
    costly = Balance(WIDE.error, WIDE.confidence)
    plan = plan_of(FOLDED, choices, balance=costly)
    found = run(plan, [stream()], Course(170, (), 3, ((2, 5), (5, 1)))).rows
    assert {row[-1] for row in found} == {True}
    for place in range(len(FOLDED)):
        value, low, high = ([row[3 + 3 * place + end] for row in found] for end in range(3))
        assert value == low == high == [row[3 + place] for row in exact]


def test_overlapping_windows_share_the_exact_work_of_quantiles() -> None:
    window = TimeWindow(RANGE_US, RANGE_US // 25)
    asked = {"m": median("x"), "n": count()}
    found = run(plan_of(asked, window=window, balance=Balance(0.3)), [stream()], AT_ONCE).rows
    exact = run(plan_of(asked, window=window, balance=None), [stream()], AT_ONCE).rows
    assert [(*row[:4], row[6]) for row in found] == exact
    assert {row[-1] for row in found} == {True}
