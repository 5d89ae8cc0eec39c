"""Lowering: prefixes over raw columns, the aggregate's spec, what follows it, the output."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import nullcontext

import pyarrow as pa
import pytest

from tests.query.catalog import CALLS, ODD, RIDES, sql, stream
from tidegate.errors import QueryError, UnavailableError
from tidegate.expression.tree import Column
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.port import OrderKey, Port
from tidegate.operate.stateless import Stateless
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import ARROW, SPARK, Edge, Plan, Subquery
from tidegate.query.aggregate import count
from tidegate.query.binder import UnknownKernel
from tidegate.query.expression import col
from tidegate.query.node.node import Filter, Input
from tidegate.route.registry import partitioner_of
from tidegate.schema import TIME
from tidegate.testing import sampled_means

HOUR = "[RANGE 1 HOUR]"
ONLY_SPARK = "regexp_extract(route, 'a', 1)"


def plan(text: str) -> Plan:
    return lower(sql(text))


def only(made: Plan) -> Subquery:
    """The subquery of a query that has one."""
    (subquery,) = made.subqueries
    return subquery


def schema(made: Plan) -> pa.Schema:
    return made.port(made.targets[0].edge).schema


def after(text: str) -> Port:
    """What follows the operator of a query that has one."""
    (port,) = only(plan(text)).ports
    return port


def spark(expressions: Sequence[str], schema: pa.Schema) -> Sequence[pa.DataType]:
    """What Spark would answer for the expressions of these tests."""
    known = {name: schema.field(name).type for name in schema.names}
    return [pa.bool_() if ">" in e else known.get(e.strip("`"), pa.string()) for e in expressions]


def test_a_stateless_query_is_one_prefix() -> None:
    made = plan("SELECT route, fare * 2 AS f FROM rides WHERE tip > 1 AND (fare > 0 OR paid)")
    (prefix,) = only(made).prefixes
    assert (prefix.origin, prefix.name, prefix.time) == (0, "rides", "dropoff_time")
    assert prefix.columns == ("route", "fare", "tip", "paid")
    assert len(prefix.where) == 2
    assert [n for n, _ in prefix.outputs] == ["route", "f"]
    assert prefix.engine == ARROW
    assert prefix.sql_where == "`tip` > 1 AND (`fare` > 0 OR `paid`)"
    assert prefix.sql_outputs == (("route", "`route`"), ("f", "`fare` * 2"))
    assert only(made).operator == Stateless()
    assert made.streams == (RIDES,)
    assert schema(made) == pa.schema([("ts", TIME), ("route", "string"), ("f", "double")])


def test_the_time_column_is_read_only_when_it_is_used() -> None:
    assert only(plan("SELECT fare FROM rides")).prefixes[0].columns == ("fare",)
    assert only(plan("SELECT ts AS t FROM rides")).prefixes[0].columns == ("dropoff_time",)
    used = only(plan("SELECT fare FROM rides WHERE ts > TIMESTAMP '2024-01-01'")).prefixes[0]
    assert used.columns == ("dropoff_time", "fare")
    assert used.sql_where is not None
    assert used.sql_where.startswith("`dropoff_time` > ")


def test_a_query_without_a_select_list_gives_all_columns() -> None:
    made = lower(Filter(Input(CALLS), (col("fare") > 1).node))
    assert schema(made).names == ["ts", "route", "fare"]
    odd = schema(lower(Input(ODD))).names
    assert odd[0] == "ts"
    assert "ts_1" in odd, "the column that is called so and is not the event time"


def test_nothing_but_the_event_time() -> None:
    made = plan("SELECT dropoff_time AS ts FROM rides")
    assert schema(made) == pa.schema([("ts", TIME)])
    assert only(made).prefixes[0].outputs == ()


def test_chains_of_subqueries_become_expressions_over_raw_columns() -> None:
    made = plan(
        "SELECT a + 1 AS b, ts AS t FROM (SELECT fare * 2 AS a, tip AS fare FROM rides "
        "WHERE fare > 0) WHERE a > 10 AND fare > 3"
    )
    (prefix,) = only(made).prefixes
    assert prefix.sql_where == "`fare` > 0 AND (`fare` * 2) > 10 AND `tip` > 3"
    assert prefix.sql_outputs == (("b", "(`fare` * 2) + 1"), ("t", "`dropoff_time`"))
    rows = pa.table({"fare": [1.5], "tip": pa.array([4], pa.int32()), "dropoff_time": [None]})
    assert evaluate(prefix.outputs[0][1], rows).to_pylist() == [4.0]


def test_a_grouped_aggregate() -> None:
    made = plan(
        "SELECT route, AVG(fare) AS fare, SUM(fare) AS total, COUNT(*) AS n FROM rides "
        "[RANGE 15 MINUTES SLIDE 5 MINUTES] WHERE fare > 0 GROUP BY route"
    )
    (prefix,) = only(made).prefixes
    assert prefix.outputs == (
        ("k0", Column("route", pa.string())),
        ("x0", Column("fare", pa.float64())),
    )
    found = only(made).operator
    assert isinstance(found, WindowAggregate)
    assert (found.spec.window.range_us, found.spec.window.slide_us) == (900_000_000, 300_000_000)
    assert found.spec.keys == (("k0", pa.string()),)
    assert found.spec.functions == (
        Function("a0", "mean", ("x0",), (pa.float64(),)),
        Function("a1", "sum", ("x0",), (pa.float64(),)),
        Function("a2", "count"),
    )
    assert found.key_names == ("route",)
    (port,) = only(made).ports
    assert port.outputs == (
        ("route", Column("k0", pa.string())),
        ("fare", Column("a0", pa.float64())),
        ("total", Column("a1", pa.float64())),
        ("n", Column("a2", pa.int64())),
    )
    assert (port.where, port.order, port.limit) == ((), (), None)
    assert (port.time, port.offset_us) == ("window_end", -1)
    assert schema(made).names == ["window_start", "window_end", "route", "fare", "total", "n"]


def test_what_follows_the_aggregate() -> None:
    found = after(
        f"SELECT UPPER(route) AS line, SUM(tip) / COUNT(*) AS each, window_end AS until "
        f"FROM rides {HOUR} GROUP BY route HAVING COUNT(*) > 1 AND each > 0 "
        "ORDER BY MAX(fare) DESC, line NULLS LAST LIMIT 7"
    )
    assert len(found.where) == 2
    assert [n for n, _ in found.outputs] == ["line", "each", "until"]
    assert found.outputs[2][1] == Column("window_end", TIME)
    assert found.order[0] == OrderKey(Column("a2", pa.float64()), True, False)
    assert (found.order[1].descending, found.order[1].nulls_first) == (False, False)
    assert found.limit == 7
    rows = pa.table(
        {
            "window_start": pa.array([0], TIME),
            "window_end": pa.array([1], TIME),
            "k0": ["ab"],
            "a0": [6],
            "a1": [4],
            "a2": [1.0],
        }
    )
    assert [evaluate(e, rows).to_pylist()[0] for _, e in found.outputs[:2]] == ["AB", 1.5]
    assert [evaluate(e, rows).to_pylist() for e in found.where] == [[True], [True]]


def test_windows_listed_under_their_own_names_are_not_repeated() -> None:
    made = plan(f"SELECT window_end, COUNT(*) AS n, window_start FROM rides {HOUR}")
    assert schema(made).names == ["window_start", "window_end", "n"]


def test_a_subquery_of_windows() -> None:
    found = after(
        f"SELECT g FROM (SELECT route, AVG(fare) + 1 AS g FROM rides {HOUR} GROUP BY route) "
        "WHERE g > 2 ORDER BY g DESC LIMIT 3"
    )
    assert [n for n, _ in found.outputs] == ["g"]
    assert len(found.where) == 1
    assert found.limit == 3


def test_a_condition_after_a_limit_is_a_subquery_of_its_own() -> None:
    inner = f"(SELECT COUNT(*) AS n FROM rides {HOUR} ORDER BY n LIMIT 2)"
    first, second = plan(f"SELECT n FROM {inner} WHERE n > 2").subqueries
    assert (first.name, second.name) == ("aggregate", "stateless")
    assert first.ports[0].where == ()
    assert first.ports[0].limit == 2
    (prefix,) = second.prefixes
    assert (prefix.origin, prefix.name, prefix.sql_where) == (Edge(0, 0), "aggregate", "`n` > 2")
    assert second.ports[0].schema.names == ["window_start", "window_end", "n"]
    with pytest.raises(UnavailableError, match="ordering a window twice is not available yet"):
        plan(f"SELECT n FROM {inner} ORDER BY n")


def test_a_union_casts_to_the_wider_type() -> None:
    made = plan("SELECT route, fare FROM rides UNION ALL SELECT route, fare FROM calls")
    assert made.streams == (RIDES, CALLS)
    assert [p.origin for p in only(made).prefixes] == [0, 1]
    assert only(made).prefixes[1].sql_outputs[1] == ("fare", "CAST(`fare` AS DOUBLE)")
    assert schema(made).field("fare").type == pa.float64()


def test_an_aggregate_over_a_union_has_a_prefix_for_every_side() -> None:
    made = plan(
        "SELECT a, SUM(f) AS s FROM (SELECT route AS a, tip AS f FROM rides WHERE paid UNION ALL "
        f"SELECT LOWER(route), fare FROM calls UNION ALL SELECT route, tip FROM rides) {HOUR} "
        "WHERE f > 1 GROUP BY a"
    )
    assert [p.name for p in only(made).prefixes] == ["rides", "calls", "rides"]
    assert [p.sql_where for p in only(made).prefixes] == [
        "`paid` AND `tip` > 1",
        "`fare` > 1",
        "`tip` > 1",
    ]
    assert [dict(p.sql_outputs)["k0"] for p in only(made).prefixes] == [
        "`route`",
        "LOWER(`route`)",
        "`route`",
    ]


def test_the_parts_of_a_split_may_meet_again() -> None:
    high, rest = stream(Input(CALLS)).split(col("fare") > 10)
    made = lower(high.union(rest).window("1 hour").agg(n=count()).node)
    assert [p.sql_where for p in only(made).prefixes] == [
        "COALESCE(`fare` > 10, FALSE)",
        "NOT COALESCE(`fare` > 10, FALSE)",
    ]


def test_text_is_cast_for_a_numeric_aggregate() -> None:
    made = plan(f"SELECT SUM(route) AS s FROM rides {HOUR}")
    assert only(made).prefixes[0].sql_outputs == (("x0", "CAST(`route` AS DOUBLE)"),)
    assert schema(made).field("s").type == pa.float64()


def test_what_no_kernel_evaluates_runs_in_spark() -> None:
    node = sql(
        f"SELECT {ONLY_SPARK} AS x, COUNT(*) AS n FROM rides {HOUR} WHERE tip > 1 GROUP BY x"
    )
    with pytest.raises(UnknownKernel, match="REGEXP_EXTRACT needs Spark"):
        lower(node)
    (prefix,) = only(lower(node, spark)).prefixes
    assert prefix.engine == SPARK
    assert prefix.where == ()
    assert prefix.outputs == (("k0", Column("k0", pa.string())),)
    assert prefix.sql_where == "`tip` > 1"
    assert prefix.columns == ("route", "tip")
    assert prefix.reason is not None
    assert prefix.reason.startswith("REGEXP_EXTRACT needs Spark")


def test_only_the_sides_that_need_spark_run_there() -> None:
    made = lower(
        sql(f"SELECT {ONLY_SPARK} AS r FROM rides UNION ALL SELECT route FROM calls"), spark
    )
    assert [p.engine for p in only(made).prefixes] == [SPARK, ARROW]


def test_a_condition_that_spark_says_is_none() -> None:
    node = sql(f"SELECT fare FROM rides WHERE {ONLY_SPARK}")
    with pytest.raises(QueryError, match=r"WHERE: REGEXP_EXTRACT.* must be true or false; got str"):
        lower(node, spark)


def test_after_a_window_there_is_no_spark() -> None:
    text = f"SELECT {ONLY_SPARK} AS x, COUNT(*) AS n FROM rides {HOUR} GROUP BY route"
    with pytest.raises(QueryError, match="After a window there is no Spark SQL"):
        lower(sql(text), spark)
    late = f"SELECT regexp_extract(x, 'b', 1) AS y FROM (SELECT {ONLY_SPARK} AS x FROM rides " + (
        f"{HOUR} GROUP BY x)"
    )
    with pytest.raises(QueryError, match="After a window there is no Spark SQL"):
        lower(sql(late), spark)


def test_plans_are_pickled_without_the_parser() -> None:
    made = plan(f"SELECT route, MEDIAN(fare) AS m FROM rides {HOUR} GROUP BY route ORDER BY m")
    frozen = pickle.dumps(made)
    assert b"sqlglot" not in frozen
    assert pickle.loads(frozen) == made


@pytest.mark.parametrize("partitioner", ["hash", "shuffle"])
@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize(
    "clause",
    [
        *("", "WITH ERROR 5 PERCENT", "WITH SHED 50 PERCENT"),
        *("WITH BALANCE ERROR 10 PERCENT", "WITH BALANCE ERROR 10 PERCENT TRIM ALL"),
    ],
)
def test_ports_find_their_columns_where_a_checkpoint_names_states_otherwise(
    clause: str, means: bool, partitioner: str
) -> None:
    """Of an answer that has columns of its own, whatever the states are called."""
    ending = f"AVG(tip) AS a, QUANTILE(fare, 0.9) AS q FROM rides {HOUR} GROUP BY route {clause}"
    choices = Choices(partitioner=partitioner_of(partitioner))
    with sampled_means() if means else nullcontext():
        before = lower(sql(f"SELECT route, MAX(fare) AS m, {ending}"), choices=choices)
        plain = lower(sql(f"SELECT route, {ending}"), choices=choices)
        after = lower(sql(f"SELECT route, {ending}"), choices=choices, kept=before.recorded)
    first, last = after.subqueries[0].operator, after.subqueries[-1]
    assert isinstance(first, WindowAggregate)
    assert isinstance(last.operator, WindowAggregate | MergeWindows)
    names = [function.name for function in first.spec.functions]
    assert clause.startswith("WITH SHED") or "a0" not in names, "the state of MAX(fare) is left"
    there = set(last.operator.answer.schema(last.operator.spec).names)
    assert set(last.ports[0].columns) <= there
    if {"l0", "h0", "e0"} <= there:
        assert last.ports == plain.subqueries[-1].ports
