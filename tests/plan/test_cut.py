"""The cutting of a query into units, for the three strategies."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.query.catalog import CALLS, RIDES, outputs, sql, stream
from tidegate.errors import OptionError, UnavailableError
from tidegate.operate.process.definition import Process
from tidegate.plan.cut import Cutting
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import OPERATOR_CLOUD, OPERATOR_SET, QUERY_CLOUD, STRATEGIES, Edge
from tidegate.query.aggregate import count
from tidegate.query.expression import col, left, right
from tidegate.query.node.node import Input, Node
from tidegate.query.output import Output

HOUR = "[RANGE 1 HOUR]"
COUNTS = f"SELECT route, COUNT(*) AS n FROM calls {HOUR} GROUP BY route"
PAIRS = f"SELECT r.tip, c.fare FROM rides {HOUR} r JOIN calls {HOUR} c ON r.route = c.route"

rides, calls = stream(Input(RIDES)), stream(Input(CALLS))


class Last(Process):
    """Any process will do."""

    output: ClassVar = {"fare": "int"}

    def process(self, tuples: Any) -> Any:
        return tuples


def units(*roots: Node, strategy: str = OPERATOR_SET) -> list[tuple[str, list[str]]]:
    """Units by the kinds of nodes they begin with, with those of their tops."""
    found = Cutting.of(roots, strategy).units
    return [
        (type(u.base).__name__, [f"{type(t.node).__name__}{'!' * t.output}" for t in u.tops])
        for u in found
    ]


def shape(text: str, strategy: str = OPERATOR_SET) -> list[tuple[str, list[str]]]:
    """The units of a script; `!` marks the tops that an output takes."""
    return units(*outputs(text).values(), strategy=strategy)


@pytest.mark.parametrize("strategy", [OPERATOR_SET, QUERY_CLOUD])
def test_what_follows_a_stateful_operator_is_in_its_unit(strategy: str) -> None:
    assert shape(f"{COUNTS} HAVING n > 2 ORDER BY n LIMIT 3", strategy) == [("Aggregate", ["Top!"])]
    assert shape(f"SELECT tip + 1 AS t FROM ({PAIRS}) WHERE tip > fare", strategy) == [
        ("Join", ["Project!"])
    ]
    assert units(calls.process(Last).where(col("fare") > 1).node, strategy=strategy) == [
        ("ProcessNode", ["Filter!"])
    ]


@pytest.mark.parametrize("strategy", [OPERATOR_SET, QUERY_CLOUD])
def test_what_is_stateless_below_an_operator_has_no_unit(strategy: str) -> None:
    assert shape("SELECT fare * 2 AS f FROM rides WHERE paid", strategy) == [
        ("Project", ["Project!"])
    ]
    union = f"(SELECT fare FROM rides WHERE paid UNION ALL SELECT fare FROM calls) {HOUR}"
    assert shape(f"SELECT SUM(fare) AS s FROM {union}", strategy) == [("Aggregate", ["Aggregate!"])]


def test_each_stateful_operator_is_a_unit_after_those_it_takes_from() -> None:
    nested = f"SELECT MAX(f) AS m FROM (SELECT tip + fare AS f FROM ({PAIRS}) WHERE tip > 1) {HOUR}"
    assert shape(nested) == [("Join", ["Project"]), ("Aggregate", ["Aggregate!"])]
    both = f"SELECT a.n FROM ({COUNTS}) {HOUR} a JOIN ({COUNTS} HAVING n > 1) {HOUR} b ON a.n < b.n"
    assert shape(both) == [("Aggregate", ["Aggregate", "Filter"]), ("Join", ["Project!"])]


def test_what_two_take_is_one_unit_and_equal_rows_are_one_top() -> None:
    counts = calls.window("1 hour").group_by("route").agg(n=count())
    some, rest = counts.split(col("n") > 5)
    pairs = some.join(rest, within="1 day", on=left.n > right.n).select(left.n)
    assert units(pairs.node) == [("Aggregate", ["Branch", "Branch"]), ("Join", ["Project!"])]
    same = counts.join(counts, within="1 day", on=left.n > right.n).select(left.n)
    assert units(same.node) == [("Aggregate", ["Aggregate"]), ("Join", ["Project!"])]
    assert units(counts.node, same.node)[0] == ("Aggregate", ["Aggregate!"])


def test_a_join_puts_its_columns_out_in_two_shapes_where_it_must() -> None:
    """Between subqueries columns have the names of their sides, in an output their own."""
    pairs = calls.join(rides.select("tip"), within="1 hour", on=left.fare > right.tip)
    total = pairs.window("1 hour").agg(n=count())
    assert units(pairs.node, total.node) == [
        ("Join", ["Join!", "Join"]),
        ("Aggregate", ["Aggregate!"]),
    ]
    assert units(pairs.node, pairs.node) == [("Join", ["Join!"])]


def test_a_condition_after_a_limit_is_apart_and_a_select_is_not() -> None:
    top = f"({COUNTS} ORDER BY n DESC LIMIT 3)"
    assert shape(f"SELECT n + 1 AS m FROM {top}") == [("Aggregate", ["Project!"])]
    assert shape(f"SELECT n FROM {top} WHERE n > 1") == [
        ("Aggregate", ["Top"]),
        ("Project", ["Project!"]),
    ]
    ordered = f"({COUNTS} ORDER BY n DESC)"
    assert shape(f"SELECT n FROM {ordered} WHERE n > 1") == [("Aggregate", ["Project!"])]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT route, n FROM {top} ORDER BY n DESC LIMIT 1",
        "SELECT n FROM {top} ORDER BY n DESC LIMIT 1",
        "SELECT n + 1 AS m FROM {top} ORDER BY m DESC",
        "SELECT route, n FROM (SELECT * FROM {top} WHERE n > 1) ORDER BY n DESC LIMIT 1",
    ],
)
def test_ordering_a_window_twice_is_refused(text: str, strategy: str) -> None:
    top = f"({COUNTS} ORDER BY n LIMIT 3)"
    with pytest.raises(UnavailableError, match="ordering a window twice is not available yet"):
        lower(sql(text.format(top=top)), strategy=strategy)


def test_a_union_of_results_is_a_unit_of_its_own() -> None:
    union = f"SELECT n FROM ({COUNTS}) UNION ALL SELECT tip FROM ({PAIRS}) UNION ALL " + (
        "SELECT fare FROM calls"
    )
    assert shape(union) == [
        ("Aggregate", ["Project"]),
        ("Join", ["Project"]),
        ("Union", ["Union!"]),
    ]


def test_operator_cloud_has_a_unit_for_every_operator() -> None:
    text = "SELECT fare * 2 AS f FROM rides WHERE paid"
    assert shape(text, OPERATOR_CLOUD) == [("Filter", ["Filter"]), ("Project", ["Project!"])]
    text = f"SELECT m + 1 AS k FROM (SELECT MAX(f) AS m FROM ({text}) {HOUR}) WHERE m > 1"
    assert shape(text, OPERATOR_CLOUD) == [
        ("Filter", ["Filter"]),
        ("Project", ["Project"]),
        ("Aggregate", ["Aggregate"]),
        ("Filter", ["Filter"]),
        ("Project", ["Project!"]),
    ]


def test_operator_cloud_leaves_an_order_with_its_aggregate() -> None:
    text = f"{COUNTS} HAVING n > 2 ORDER BY n LIMIT 3"
    assert shape(text, OPERATOR_CLOUD) == [("Aggregate", ["Top!"])]
    after = f"SELECT n FROM ({text}) WHERE n > 1"
    assert shape(after, OPERATOR_CLOUD) == [
        ("Aggregate", ["Top"]),
        ("Filter", ["Filter"]),
        ("Project", ["Project!"]),
    ]


def test_outputs_that_share_work() -> None:
    script = (
        f"INSERT INTO a {COUNTS} HAVING n > 3; INSERT INTO b {COUNTS};"
        "INSERT INTO c SELECT fare FROM calls WHERE fare > 1"
    )
    assert shape(script) == [
        ("Aggregate", ["Filter!", "Aggregate!"]),
        ("Project", ["Project!"]),
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_units_become_subqueries_in_their_order(strategy: str) -> None:
    text = (
        f"INSERT INTO a SELECT MAX(t) AS m FROM (SELECT tip AS t FROM ({PAIRS}) WHERE tip > 1) "
        f"{HOUR}; INSERT INTO b SELECT tip FROM ({PAIRS})"
    )
    named = [Output(name, node) for name, node in outputs(text).items()]
    plan = lower(named, strategy=strategy)
    cutting = Cutting.of((o.node for o in named), strategy)
    assert len(plan.subqueries) == len(cutting.units)
    assert [len(s.ports) for s in plan.subqueries] == [len(u.tops) for u in cutting.units]
    for number, subquery in enumerate(plan.subqueries):
        for prefix in subquery.prefixes:
            if isinstance(prefix.origin, Edge):
                assert prefix.origin.subquery < number
    assert [t.name for t in plan.targets] == ["a", "b"]
    assert len({s.name for s in plan.subqueries}) == len(plan.subqueries)


def test_names_are_by_kind_with_a_number_from_the_second_on() -> None:
    text = f"SELECT MAX(n) AS m FROM (SELECT n FROM ({COUNTS}) WHERE n > 1) {HOUR}"
    assert [s.name for s in lower(sql(text)).subqueries] == ["aggregate", "aggregate2"]
    names = [s.name for s in lower(sql(text), strategy=OPERATOR_CLOUD).subqueries]
    assert names == ["aggregate", "stateless", "stateless2", "aggregate2"]


def test_another_strategy_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        lower(sql(COUNTS), strategy="all")
    assert str(caught.value) == (
        "--strategy: must be one of operator-set, query-cloud, operator-cloud; got all."
    )
