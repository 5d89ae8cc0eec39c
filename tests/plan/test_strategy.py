"""Strategies: hops, channels and costs counted by hand, and instances in proportion to costs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.query.catalog import outputs, sql
from tidegate.plan.explain import compare, explain_all
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import OPERATOR_CLOUD, OPERATOR_SET, QUERY_CLOUD, STRATEGIES
from tidegate.plan.strategy import (
    Formula,
    Handover,
    Layout,
    OperatorCount,
    Weights,
    formula,
    proposed,
    size,
    spread,
)
from tidegate.query.output import Output

CHAIN = """
WITH dear AS (SELECT route, fare * 2 AS f FROM rides WHERE fare > 1),
pairs AS (
  SELECT d.route, d.f FROM dear AS d [RANGE 1 MINUTE] JOIN calls AS c [RANGE 1 MINUTE]
  ON d.route = c.route
)
SELECT route, MAX(f) AS f FROM pairs [RANGE 1 HOUR] WHERE f > 3 GROUP BY route
"""
"""Select, filter, join, select, filter, aggregate: six operators, two with state."""

DIAMOND = """
CREATE STREAM minutes AS SELECT route, COUNT(*) AS n FROM rides [RANGE 1 MINUTE] GROUP BY route;
CREATE STREAM hours AS SELECT route, SUM(n) AS n FROM minutes [RANGE 1 HOUR] GROUP BY route;
INSERT INTO both SELECT a.route, a.n FROM minutes AS a [RANGE 1 HOUR] JOIN hours AS b
[RANGE 1 HOUR] ON a.route = b.route;
INSERT INTO hourly SELECT * FROM hours;
"""


def chain() -> tuple[Output, ...]:
    return (Output(None, sql(CHAIN)),)


def test_a_chain_as_operator_set() -> None:
    layout = Layout.of(lower(chain(), strategy=OPERATOR_SET), {"join": 3, "aggregate": 4})
    assert layout.handovers == (Handover("join", "aggregate", 12),)
    assert (layout.hops, layout.fan_out, layout.total) == (1, 12, 7)
    assert layout.cost(Weights(alpha=0.5, beta=0.01, rate=1_000)) == 0.5 * 12 + 0.01 * 1_000 * 1


def test_a_chain_as_query_cloud_has_all_instances_for_every_subquery() -> None:
    plan = lower(chain(), strategy=QUERY_CLOUD)
    layout = Layout.of(plan, spread(plan, 7))
    assert layout.instances == {"join": 7, "aggregate": 7}
    assert (layout.hops, layout.fan_out, layout.total) == (1, 49, 7)


def test_a_chain_as_operator_cloud() -> None:
    plan = lower(chain(), strategy=OPERATOR_CLOUD)
    layout = Layout.of(plan, spread(plan, 12))
    assert layout.instances == {
        "stateless": 2,
        "stateless2": 2,
        "join": 2,
        "stateless3": 2,
        "stateless4": 2,
        "aggregate": 2,
    }
    assert [(h.giver, h.taker) for h in layout.handovers] == [
        ("stateless", "stateless2"),
        ("stateless2", "join"),
        ("join", "stateless3"),
        ("stateless3", "stateless4"),
        ("stateless4", "aggregate"),
    ]
    assert (layout.hops, layout.fan_out, layout.total) == (5, 5 * 4, 12)


def test_the_longest_way_counts_and_every_edge_has_its_channels() -> None:
    plan = lower(tuple(Output(n, node) for n, node in outputs(DIAMOND).items()))
    names = [s.name for s in plan.subqueries]
    assert names == ["aggregate", "hourly", "both"]
    layout = Layout.of(plan, dict(zip(names, (2, 3, 5), strict=True)))
    assert set(layout.handovers) == {
        Handover("aggregate", "hourly", 6),
        Handover("aggregate", "both", 10),
        Handover("hourly", "both", 15),
    }
    assert (layout.hops, layout.fan_out) == (2, 31)


def test_a_result_that_a_subquery_takes_twice_is_handed_over_twice() -> None:
    text = """
    WITH m AS (SELECT route, COUNT(*) AS n FROM rides [RANGE 1 MINUTE] GROUP BY route)
    SELECT a.n FROM m AS a [RANGE 1 HOUR] JOIN m AS b [RANGE 1 HOUR] ON a.route = b.route
    """
    layout = Layout.of(lower(sql(text)), {"aggregate": 2, "join": 3})
    assert layout.handovers == (Handover("aggregate", "join", 6),) * 2
    assert layout.hops == 1


def test_a_query_of_one_subquery_hands_nothing_on() -> None:
    plan = lower(sql("SELECT COUNT(*) AS n FROM rides [RANGE 1 HOUR]"))
    layout = Layout.of(plan, spread(plan, 8))
    assert (layout.hops, layout.fan_out, layout.cost(Weights())) == (0, 0, 0)
    assert layout.instances == {"aggregate": 8}


def test_operators_are_counted_once_and_orders_belong_to_their_windows() -> None:
    assert size(chain()) == OperatorCount(6, 2)
    both = tuple(Output(n, node) for n, node in outputs(DIAMOND).items())
    assert size(both).stateful == 3
    ordered = sql(
        "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] WHERE fare > 0 GROUP BY route "
        "ORDER BY n DESC LIMIT 3"
    )
    assert size((Output(None, ordered),)) == OperatorCount(2, 1)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (QUERY_CLOUD, Formula(90 * 89, 2)),
        (OPERATOR_CLOUD, Formula(15 * 5, 5)),
        (OPERATOR_SET, Formula(30 * 2, 2)),
    ],
)
def test_the_formulas_on_streamclouds_first_example(strategy: str, expected: Formula) -> None:
    """Six operators, two of them stateful, on 90 nodes."""
    assert formula(strategy, OperatorCount(6, 2), 90) == expected


def test_costs_by_the_formulas_order_the_strategies_at_high_rates() -> None:
    weights = Weights(alpha=1, beta=1, rate=100_000)
    costs = {}
    for strategy in STRATEGIES:
        model = formula(strategy, OperatorCount(6, 2), 1_000)
        costs[strategy] = weights.cost(model.fan_out, model.hops)
    assert costs[OPERATOR_SET] == 1_000 / 3 * 2 + 200_000
    assert costs[QUERY_CLOUD] == 999_000 + 200_000
    assert costs[OPERATOR_CLOUD] == 1_000 / 6 * 5 + 500_000
    assert min(costs, key=lambda s: costs[s]) == OPERATOR_SET


def test_a_query_without_state_has_one_part_by_the_formula() -> None:
    assert formula(OPERATOR_SET, OperatorCount(2, 0), 4) == Formula(0, 0)
    assert formula(OPERATOR_CLOUD, OperatorCount(0, 0), 4) == Formula(0, 0)


def test_the_comparison_as_text() -> None:
    plans = {s: lower(chain(), strategy=s) for s in (OPERATOR_SET, QUERY_CLOUD)}
    cuts = {s: Layout.of(p, spread(p, 4)) for s, p in plans.items()}
    text = compare({**cuts, OPERATOR_CLOUD: "SELECT: needs more."}, Weights(1, 0.5, 20))
    assert text == (
        "strategies (cost = 1 * fan-out + 0.5 * 20 tuples/s * hops)\n"
        "  strategy      subqueries  instances  hops  fan-out  cost\n"
        "  operator-set           2          4     1        4  14.0\n"
        "  query-cloud            2          4     1       16  26.0\n"
        "  operator-cloud: not for this query\n"
        "  cheapest: operator-set"
    )
    whole = explain_all(size(chain()), {**cuts, OPERATOR_CLOUD: "SELECT: needs more."}, Weights())
    assert "  not for this query: SELECT: needs more.\n" in whole
    assert (
        "  join to aggregate: 4 channels\n"
        "  1 hop, fan-out 4, cost 104.0\n"
        "  by the formula for 6 operators, 2 stateful: 2 hops, fan-out 2.7, cost 202.7\n"
    ) in whole


def test_equal_costs_are_said_to_be_equal() -> None:
    plans = [lower(chain(), strategy=s) for s in (OPERATOR_SET, QUERY_CLOUD)]
    cuts = {p.strategy: Layout.of(p, dict.fromkeys(("join", "aggregate"), 2)) for p in plans}
    assert compare(cuts, Weights()).endswith("\n  cheapest: operator-set and query-cloud")


@pytest.mark.parametrize(
    ("costs", "total", "expected"),
    [
        ([3, 1], 4, [3, 1]),
        ([9, 1], 20, [18, 2]),
        ([9, 1], 4, [3, 1]),
        ([5, 3, 2], 10, [5, 3, 2]),
        ([5, 3, 2], 7, [4, 2, 1]),
        ([1, 1, 1], 5, [2, 2, 1]),
        ([1000, 1, 1], 3, [1, 1, 1]),
        ([1000, 1, 1], 6, [4, 1, 1]),
        ([0, 0], 5, [3, 2]),
        ([0, 7, 0], 5, [1, 3, 1]),
        ([4.5], 9, [9]),
    ],
)
def test_proposals_by_hand(costs: Sequence[float], total: int, expected: list[int]) -> None:
    assert proposed(costs, total) == expected


COSTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=12)


@given(COSTS, st.integers(0, 200))
def test_a_proposal_gives_all_and_everyone_one_and_more_for_more(
    costs: list[int], extra: int
) -> None:
    total = len(costs) + extra
    found = proposed(costs, total)
    assert sum(found) == total
    assert min(found) >= 1
    for cost, number in zip(costs, found, strict=True):
        for other, beside in zip(costs, found, strict=True):
            assert number >= beside or cost <= other


@given(COSTS.filter(any), st.integers(0, 200))
def test_a_proposal_is_less_than_one_instance_away_from_the_share(
    costs: list[int], extra: int
) -> None:
    """Where every share is one instance or more, nobody is rounded up to one."""
    total = len(costs) + extra
    shares = [Fraction(c, sum(costs)) * total for c in costs]
    if min(shares) >= 1:
        for number, share in zip(proposed(costs, total), shares, strict=True):
            assert abs(number - share) < 1


@given(COSTS, st.integers(0, 50), st.integers(1, 1000))
def test_a_proposal_depends_on_proportions_only(costs: list[int], extra: int, unit: int) -> None:
    total = len(costs) + extra
    assert proposed([c * unit for c in costs], total) == proposed(costs, total)
