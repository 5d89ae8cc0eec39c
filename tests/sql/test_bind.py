"""Binding: which nodes a SELECT becomes."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tests.query.catalog import CALLS, ODD, RIDES, STREAMS, outputs, sql
from tidegate.query.aggregate import AggregateCall, count, count_distinct, mean, quantile
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Filter, Input, Node, Order, Project, Top, Union
from tidegate.query.window import TimeWindow

HOUR = "[RANGE 1 HOUR]"


def aggregate_of(node: Node) -> Aggregate:
    while not isinstance(node, Aggregate):
        (node,) = node.children
    return node


def calls_of(text: str) -> dict[str, str]:
    return {n: str(c) for n, c in aggregate_of(sql(text)).aggregates}


def test_a_stateless_query() -> None:
    node = sql("SELECT r.route, Fare * 2 AS f FROM Rides r WHERE r.tip > 1")
    assert isinstance(node, Project)
    assert [n for n, _ in node.columns] == ["route", "f"]
    assert node.columns[1][1].sql() == "fare * 2"
    assert isinstance(node.child, Filter)
    assert node.child.child == Input(RIDES)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("*", ("dropoff_time", "route", "fare", "tip", "paid", "stops")),
        ("r.*, fare + 1 AS g", ("dropoff_time", "route", "fare", "tip", "paid", "stops", "g")),
        ("* EXCEPT (stops, Paid)", ("dropoff_time", "route", "fare", "tip")),
        ("ts, fare", ("fare",)),
        ("UPPER(route), fare + tip", ("upper(route)", "(fare + tip)")),
    ],
)
def test_select_lists(items: str, names: tuple[str, ...]) -> None:
    assert sql(f"SELECT {items} FROM rides AS r").names == ("ts", *names)


def test_a_star_over_a_stream_whose_time_is_ts() -> None:
    assert sql("SELECT * FROM calls").names == ("ts", "route", "fare")
    assert sql("SELECT ts, fare FROM calls").names == ("ts", "fare")


def test_a_column_ts_that_is_not_the_time_can_be_renamed() -> None:
    assert sql("SELECT ts AS label, at FROM odd").names == ("ts", "label", "at")
    assert sql("SELECT ab FROM odd").names == ("ts", "Ab")
    assert ODD.name in STREAMS


def test_the_query_of_the_design() -> None:
    node = sql(
        "SELECT route, AVG(fare) AS fare, COUNT(*) AS n FROM rides "
        "[RANGE 15 MINUTES SLIDE 5 MINUTES] WHERE fare > 0 GROUP BY route "
        "ORDER BY fare DESC LIMIT 10"
    )
    child = Filter(Input(RIDES), sql_filter("fare > 0"))
    window = TimeWindow(900_000_000, 300_000_000)
    calls = (("fare", mean("fare")), ("n", count()))
    expected = Aggregate(child, window, (("route", column("route")),), calls)
    assert node == Top(expected, (Order(column("fare"), True),), 10)


def sql_filter(condition: str) -> exp.Expression:
    node = sql(f"SELECT fare FROM rides WHERE {condition}")
    assert isinstance(node, Project)
    assert isinstance(node.child, Filter)
    return node.child.predicate


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ("COUNT(*)", "count(*)"),
        ("COUNT(1)", "count(*)"),
        ("COUNT(fare)", "count(fare)"),
        ("COUNT(DISTINCT route)", "count(DISTINCT route)"),
        ("SUM(fare)", "sum(fare)"),
        ("AVG(fare)", "mean(fare)"),
        ("MEAN(fare)", "mean(fare)"),
        ("MIN(fare)", "min(fare)"),
        ("MAX(DISTINCT fare)", "max(fare)"),
        ("VAR(fare)", "var(fare)"),
        ("VARIANCE(fare)", "var(fare)"),
        ("VAR_SAMP(fare)", "var(fare)"),
        ("STDDEV(fare)", "stddev(fare)"),
        ("STDDEV_SAMP(fare)", "stddev(fare)"),
        ("STD(fare)", "stddev(fare)"),
        ("MEDIAN(fare)", "quantile(fare, 0.5)"),
        ("QUANTILE(fare, 0.9)", "quantile(fare, 0.9)"),
        ("PERCENTILE(fare, 1)", "quantile(fare, 1.0)"),
        ("FIRST(fare)", "first(fare)"),
        ("FIRST_VALUE(fare)", "first(fare)"),
        ("LAST(fare)", "last(fare)"),
        ("LAST_VALUE(fare)", "last(fare)"),
        ("MIN_BY(route, fare)", "min_by(route, fare)"),
        ("MAX_BY(DISTINCT route, fare)", "max_by(route, fare)"),
        ("CORR(fare, tip)", "corr(fare, tip)"),
        ("COVAR_SAMP(fare, tip)", "covar_samp(fare, tip)"),
        ("covar_pop(fare, tip)", "covar_pop(fare, tip)"),
        ("BOOL_AND(paid)", "bool_and(paid)"),
        ("EVERY(DISTINCT paid)", "bool_and(paid)"),
        ("BOOL_OR(paid)", "bool_or(paid)"),
        ("SOME(fare > 1)", "bool_or(fare > 1)"),
        ("ANY(paid)", "bool_or(paid)"),
        ("COUNT_IF(fare > tip)", "count_if(fare > tip)"),
        ("APPROX_COUNT_DISTINCT(route)", "approx_count_distinct(route, 0.05)"),
        ("APPROX_COUNT_DISTINCT(DISTINCT fare)", "approx_count_distinct(fare, 0.05)"),
        ("APPROX_COUNT_DISTINCT(route, 0.01)", "approx_count_distinct(route, 0.01)"),
        ("SUM(r.fare + tip * 2)", "sum(fare + tip * 2)"),
        ("SUM(fare) FILTER (WHERE tip > 0)", "sum(CASE WHEN tip > 0 THEN fare END)"),
        ("COUNT(*) FILTER (WHERE tip > 0)", "count(CASE WHEN tip > 0 THEN 1 END)"),
        ("ANY(paid) FILTER (WHERE tip > 0)", "bool_or(CASE WHEN tip > 0 THEN paid END)"),
        (
            "MIN_BY(route, fare) FILTER (WHERE tip > 0)",
            "min_by(CASE WHEN tip > 0 THEN route END, CASE WHEN tip > 0 THEN fare END)",
        ),
    ],
)
def test_aggregate_functions(written: str, call: str) -> None:
    assert calls_of(f"SELECT {written} AS a FROM rides {HOUR} r") == {"a": call}


def test_aggregates_without_a_name_get_spark_s() -> None:
    names = sql(f"SELECT COUNT(*), AVG(fare), SUM(tip) / 2 FROM rides {HOUR}").names
    assert names == ("window_start", "window_end", "count(1)", "avg(fare)", "(sum(tip) / 2)")
    names = sql(f"SELECT corr(fare, tip), EVERY(paid), Max_By(route, fare) FROM rides {HOUR}").names
    assert names[2:] == ("corr(fare, tip)", "every(paid)", "max_by(route, fare)")


def test_an_aggregate_that_is_written_twice_is_computed_once() -> None:
    text = (
        f"SELECT AVG(fare) AS f, AVG(fare) + COUNT(*) AS g FROM rides {HOUR} "
        "HAVING avg(fare) > 1 AND COUNT(1) > 2 ORDER BY MAX(tip), AVG(fare)"
    )
    assert calls_of(text) == {"f": "mean(fare)", "count(1)": "count(*)", "max(tip)": "max(tip)"}


@pytest.mark.parametrize(
    "group",
    ["UPPER(route), tip", "line, tip", "1, 2", "window_start, upper(r.route), window_end, TIP"],
)
def test_keys_may_be_expressions_aliases_ordinals_and_the_window(group: str) -> None:
    node = sql(
        f"SELECT UPPER(route) AS line, tip, COUNT(*) AS n FROM rides {HOUR} r GROUP BY {group}"
    )
    assert isinstance(node, Aggregate)
    assert [(n, e.sql()) for n, e in node.keys] == [("line", "UPPER(route)"), ("tip", "tip")]


def test_a_column_goes_before_an_alias_in_group_by() -> None:
    node = sql(f"SELECT UPPER(route) AS route, COUNT(*) AS n FROM rides {HOUR} GROUP BY route")
    assert isinstance(node, Project)
    assert node.columns[0][1].sql() == "UPPER(route)"
    assert [e.sql() for _, e in aggregate_of(node).keys] == ["route"]


def test_keys_need_not_be_selected() -> None:
    node = sql(f"SELECT AVG(fare) AS route FROM rides {HOUR} GROUP BY route")
    assert node.names == ("window_start", "window_end", "route")
    keys = aggregate_of(node)
    assert [n for n, _ in keys.keys] == ["route"]
    assert [n for n, _ in keys.aggregates] == ["avg(fare)"]


def test_groups_alone_are_a_query() -> None:
    node = sql(f"SELECT route FROM rides {HOUR} GROUP BY route")
    assert aggregate_of(node).aggregates == ()


def test_expressions_over_keys_and_aggregates() -> None:
    node = sql(
        f"SELECT tip * 2 + 1 AS t, SUM(fare) / COUNT(*) AS m, (tip * 2) AS u "
        f"FROM rides {HOUR} GROUP BY tip * 2"
    )
    assert isinstance(node, Project)
    assert [e.sql("spark", identify=True) for _, e in node.columns] == [
        "`u` + 1",
        "`sum(fare)` / `count(1)`",
        "`u`",
    ]


@pytest.mark.parametrize(
    ("having", "filters"),
    [
        ("n > 1", "n > 1"),
        ("COUNT(*) > 1", "n > 1"),
        ("fare > 5", "fare > 5"),
        ("route = 'a'", "route = 'a'"),
        ("window_end > TIMESTAMP '2024-01-01'", None),
        ("MAX(fare) - fare > 1", "`max(fare)` - fare > 1"),
    ],
)
def test_having_sees_keys_aliases_aggregates_and_the_window(
    having: str, filters: str | None
) -> None:
    node = sql(
        f"SELECT route, AVG(fare) AS fare, COUNT(*) AS n FROM rides {HOUR} "
        f"GROUP BY route HAVING {having}"
    )
    while not isinstance(node, Filter):
        (node,) = node.children
    if filters is not None:
        assert node.predicate.sql("spark").replace("`", "") == filters.replace("`", "")


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        ("fare", [("fare", False, True)]),
        ("2 DESC, 1", [("fare", True, False), ("route", False, True)]),
        ("AVG(fare) DESC NULLS FIRST", [("fare", True, True)]),
        ("fare * 2 NULLS LAST", [("fare * 2", False, False)]),
        ("window_end DESC, COUNT(*)", [("window_end", True, False), ("count(1)", False, True)]),
        ("f2", [("(fare * 2)", False, True)]),
    ],
)
def test_order_by(order: str, keys: list[tuple[str, bool, bool]]) -> None:
    node = sql(
        f"SELECT route, AVG(fare) AS fare, AVG(fare) * 2 AS f2 FROM rides {HOUR} "
        f"GROUP BY route ORDER BY {order}"
    )
    while not isinstance(node, Top):
        (node,) = node.children
    found = [(o.expression.sql(), o.descending, o.nulls_first) for o in node.order]
    assert found == keys
    assert node.limit is None


def test_limit_alone_is_by_key() -> None:
    node = sql(f"SELECT route FROM rides {HOUR} GROUP BY route LIMIT 3")
    assert isinstance(node, Top)
    assert (node.order, node.limit) == ((), 3)


def test_unions() -> None:
    node = sql(
        "SELECT route, fare FROM rides UNION ALL (SELECT route, fare FROM calls WHERE fare > 1) "
        "UNION ALL SELECT route, fare FROM calls"
    )
    assert isinstance(node, Union)
    assert [type(n) for n in node.inputs] == [Project, Project, Project]


def test_a_window_over_a_union_in_a_subquery() -> None:
    node = sql(
        "SELECT a, COUNT(*) AS n FROM (SELECT route AS a FROM rides UNION ALL "
        "SELECT route FROM calls) [RANGE 1 HOUR] AS u WHERE u.a <> 'x' GROUP BY u.a"
    )
    assert isinstance(node, Aggregate)
    assert isinstance(node.child, Filter)
    assert isinstance(node.child.child, Union)


def test_subqueries_and_named_ones() -> None:
    direct = sql(
        "SELECT r, COUNT(*) AS n FROM (SELECT route AS r FROM rides WHERE tip > 1) "
        f"{HOUR} GROUP BY r"
    )
    named = sql(
        "WITH busy AS (SELECT route AS r FROM rides WHERE tip > 1) "
        f"SELECT r, COUNT(*) AS n FROM busy {HOUR} GROUP BY r"
    )
    assert direct == named
    shadow = sql("WITH calls AS (SELECT fare FROM calls) SELECT * FROM calls")
    assert shadow.names == ("ts", "fare")


def test_a_name_of_with_is_that_of_its_own_scope() -> None:
    """The queries of one name in two outputs, or inside each other, are not taken for one."""
    below = "WITH p AS (SELECT fare FROM rides WHERE fare < 1) SELECT * FROM p"
    above = "WITH p AS (SELECT fare FROM rides WHERE fare > 9) SELECT * FROM p"
    made = outputs(f"INSERT INTO cheap {below}; INSERT INTO dear {above}")
    assert (made["cheap"], made["dear"]) == (sql(below), sql(above))
    assert made["cheap"] != made["dear"]
    inner = sql(f"{below} UNION ALL SELECT * FROM ({above})")
    assert isinstance(inner, Union)
    assert inner.inputs == (sql(below), Project(sql(above), sql(above).columns))


def test_a_query_of_with_that_is_read_twice_is_one_node() -> None:
    both = sql("WITH p AS (SELECT fare FROM rides) SELECT * FROM p UNION ALL SELECT * FROM p")
    one, other = (side.child for side in both.children)
    assert one is other


def test_a_stateless_query_over_the_rows_of_windows() -> None:
    node = sql(
        "SELECT route, f + 1 AS g FROM "
        f"(SELECT route, AVG(fare) AS f FROM rides {HOUR} GROUP BY route) AS w "
        "WHERE w.f > 2 ORDER BY g LIMIT 2"
    )
    assert node.names == ("window_start", "window_end", "route", "g")


def test_fields_of_structures_are_spark_s_affair() -> None:
    assert sql("SELECT stops[0] AS s FROM rides").names == ("ts", "s")
    for written in ("place.city", "o.place.city", "O.Place.city"):
        assert sql(f"SELECT {written} AS c FROM odd o").names == ("ts", "c")


def test_calls_compare_by_what_they_compute() -> None:
    assert count_distinct("x") != AggregateCall("count", count_distinct("x").arguments)
    assert quantile("x", 0.5) != quantile("x", 0.6)
    assert Input(CALLS) == sql("SELECT * FROM calls").children[0]
