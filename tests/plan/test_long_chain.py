"""Expressions of thousands of terms, through every stage from their text to their values."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.query.catalog import CALLS, RIDES, sql, stream
from tidegate.errors import QueryError, TaskError
from tidegate.expression.tree import Call, Column, Expr, describe
from tidegate.nesting import MOST_NESTED
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.query.aggregate import mean
from tidegate.query.expression import Expression, call, col
from tidegate.query.node.node import Filter, Input, Node, project
from tidegate.query.output import Output

TERMS = 1_200
"""More than Python's stack has room for; the sum of `MOST` shows that there is no next limit."""

MOST = 5_000
FARES = np.array([0.1, 0.2, 0.7, 3.0])
ROWS = pa.table(
    {
        "route": ["a", "b", None, "d"],
        "fare": FARES,
        "tip": pa.array([1, 2, 3, 4], pa.int32()),
        "paid": [True, False, None, True],
    }
)


def run(node: Node) -> list[object]:
    """The first column of a query over rides, by way of the plan that tasks are given."""
    plan = lower(node)
    assert explain((Output(None, node),), plan)
    (prefix,) = pickle.loads(pickle.dumps(plan)).subqueries[0].prefixes
    rows = ROWS
    for condition in prefix.where:
        rows = rows.filter(evaluate(condition, rows))
    values: list[object] = evaluate(prefix.outputs[0][1], rows).to_pylist()
    return values


def select(expression: str) -> list[object]:
    return run(sql(f"SELECT {expression} AS x FROM rides"))


def where(condition: str) -> list[object]:
    return run(sql(f"SELECT fare FROM rides WHERE {condition}"))


def from_left(step: Callable[[Any, Any], Any], terms: int = TERMS) -> object:
    return reduce(step, [FARES] * terms).tolist()


def test_sums_are_added_from_left_to_right() -> None:
    assert select(" + ".join(["fare"] * MOST)) == from_left(operator.add, MOST)
    assert select(" - ".join(["fare"] * TERMS)) == from_left(operator.sub)


def test_a_sum_that_overflows_says_so() -> None:
    with pytest.raises(
        TaskError, match="the result must fit its type; got 2147483647 and"
    ) as caught:
        select("2147483647 + 0 * " + " + ".join(["tip"] * TERMS))
    assert len(str(caught.value)) < 1_500


def test_conditions_by_the_thousand() -> None:
    halves = [f"fare = {i / 10}e0" for i in range(TERMS)]
    assert where(" OR ".join(halves)) == FARES.tolist()
    assert where(" OR ".join(f"({half})" for half in halves)) == FARES.tolist()
    assert where(" AND ".join(["fare < 3"] * TERMS)) == FARES[:3].tolist()


def test_texts_branches_members_and_arguments() -> None:
    assert select(" || ".join(["route"] * TERMS)) == ["a" * TERMS, "b" * TERMS, None, "d" * TERMS]
    branches = " ".join(f"WHEN tip = {i} THEN {i + 1}" for i in range(1, TERMS))
    assert select(f"CASE {branches} END") == [2, 3, 4, 5]
    assert where(f"tip IN ({', '.join(map(str, range(2, TERMS)))})") == FARES[1:].tolist()
    assert select(f"coalesce({', '.join(['paid'] * TERMS)}, false)") == [True, False, False, True]


def test_in_python_too() -> None:
    rides = Input(RIDES)
    total = sum([col("fare")] * TERMS)
    assert isinstance(total, Expression)
    added = (0 + FARES, *[FARES] * (TERMS - 1))
    assert run(project(rides, [("x", total.node)])) == reduce(operator.add, added).tolist()
    either = reduce(operator.or_, [col("fare") == i / 10 for i in range(TERMS)])
    fares = [("x", col("fare").node)]
    assert run(project(Filter(rides, either.node), fares)) == FARES.tolist()


def test_what_is_nested_in_python_has_the_same_bound() -> None:
    def deep(levels: int) -> Expression:
        return reduce(lambda inner, _: call("abs", inner), range(levels), col("fare"))

    rides = stream(Input(RIDES))
    fares = rides.select(x=deep(MOST_NESTED - 1)).where(~(col("x") < 0.5)).node
    assert run(fares) == [0.7, 3.0]
    for use in (rides.select, rides.where, mean):
        with pytest.raises(QueryError, match="expression: expressions and queries may be nested"):
            use(deep(300) > 1 if use == rides.where else deep(300))


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("abs(", ")"),
        ("coalesce(fare, ", ")"),
        ("IF(paid, ", ", fare)"),
        ("nullif(", ", 9.0)"),
        ("1 * (", ")"),
        ("CAST(", " AS double)"),
        ("CASE WHEN fare < 9 THEN ", " END"),
        ("- ", ""),
    ],
)
def test_the_deepest_expression_passes_every_stage_on_every_python(
    opening: str, closing: str
) -> None:
    assert select(f"{opening * MOST_NESTED}fare{closing * MOST_NESTED}") == FARES.tolist()


def test_the_deepest_subquery_is_planned_on_every_python() -> None:
    depth = MOST_NESTED
    assert run(sql(f"{'SELECT fare FROM (' * depth}SELECT fare FROM rides{')' * depth}"))


def test_a_part_of_a_long_expression_can_be_used_again() -> None:
    part = col("fare") + col("fare")
    more = part + 1.0
    assert repr(part) == "Expression(fare + fare)"
    assert repr(more) == "Expression(fare + fare + 1.0e0)"
    assert repr(call("abs", part) - (part - 1)) == (
        "Expression(ABS(fare + fare) - (fare + fare - 1))"
    )


def test_both_sides_of_a_join() -> None:
    terms = " + ".join(f"{side}.fare" for side in ("rides", "calls") for _ in range(500))
    plan = lower(
        sql(
            "SELECT rides.fare FROM rides [RANGE 1 SECOND] JOIN calls [RANGE 1 SECOND] "
            f"ON {terms} < 3 AND rides.route = calls.route"
        )
    )
    assert {s.name for s in plan.streams} == {RIDES.name, CALLS.name}


def test_what_failed_in_a_chain_is_not_tried_again_at_every_term() -> None:
    texts = pa.table({"s": ["x", None]})
    number: Expr = Call("cast", (Column("s", pa.string()),), pa.int64())
    for _ in range(200):  # each would double the work
        number = Call("add", (number, Column("n", pa.int64())), pa.int64())
    with pytest.raises(TaskError, match="'x'"):
        evaluate(number, texts.append_column("n", pa.array([1, 2])))


def test_what_is_beside_null_need_not_have_a_value_in_a_chain_either() -> None:
    texts = pa.table({"s": ["x", "1"], "n": pa.array([None, 1])})
    total: Expr = Column("n", pa.int64())
    for _ in range(40):
        number = Call("cast", (Column("s", pa.string()),), pa.int64())
        total = Call("add", (total, number), pa.int64())
    assert evaluate(total, texts).to_pylist() == [None, 41]


def test_deep_trees_are_compared_described_and_told_apart() -> None:
    def chain(last: str) -> Expr:
        terms: list[Expr] = [Column(name, pa.int64()) for name in [*["a"] * TERMS, last]]
        return reduce(lambda left, right: Call("add", (left, right), pa.int64()), terms)

    assert chain("b") == chain("b")
    assert chain("b") != chain("c")
    assert hash(chain("b")) == hash(chain("b"))
    assert pickle.loads(pickle.dumps(chain("b"))) == chain("b")
    assert len(describe(chain("b"))) < 1_100
    assert len({chain(f"c{n}") for n in range(20)}) == len(
        {hash(chain(f"c{n}")) for n in range(20)}
    )
