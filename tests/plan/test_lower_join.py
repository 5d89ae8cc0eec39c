"""Lowering of joins: prefixes, predicate, method and routing, fingerprint, and explain."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from tests.query.catalog import CALLS, RIDES, sql, stream
from tidegate.errors import OptionError, QueryError
from tidegate.expression.tree import describe
from tidegate.operate.join.operator import StreamJoin
from tidegate.operate.join.spec import PairInterval, WindowExtent
from tidegate.operate.port import Port
from tidegate.plan.explain import explain
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan, Subquery
from tidegate.query.binder import UnknownKernel
from tidegate.query.definition import StreamDef
from tidegate.query.expression import left, right
from tidegate.query.node.node import Input
from tidegate.query.output import Output
from tidegate.schema import TIME

HOUR = "[RANGE 1 HOUR]"
FROM = f"FROM rides {HOUR} AS r JOIN calls AS c {HOUR}"
rides, calls = stream(Input(RIDES)), stream(Input(CALLS))


def planned(text: str, **options: str) -> StreamJoin:
    return joined(lower(sql(text), None, Choices(JoinOptions(**options))))  # type: ignore[arg-type]


def only(plan: Plan) -> Subquery:
    """The subquery of a query that has one."""
    (subquery,) = plan.subqueries
    return subquery


def joined(plan: Plan) -> StreamJoin:
    found = only(plan).operator
    assert isinstance(found, StreamJoin)
    return found


def after(plan: Plan) -> Port:
    """What follows a join whose rows only the output takes."""
    (port,) = only(plan).ports
    return port


def test_prefixes_put_out_what_pairs_need() -> None:
    plan = lower(sql(f"SELECT r.route, c.fare AS f {FROM} ON r.tip < c.fare"))
    assert [p.sql_outputs for p in only(plan).prefixes] == [
        (("l0", "`route`"), ("l1", "`tip`")),
        (("r0", "`fare`"),),
    ]
    join = joined(plan)
    assert join.sides == (0, 1)
    assert join.spec.left.columns == (("l0", pa.string()), ("l1", pa.int32()))
    assert join.spec.right.columns == (("r0", pa.int32()),)
    assert [describe(e) for e in join.spec.predicate] == ["l1 < r0"]
    assert [(n, describe(e)) for n, e in after(plan).outputs] == [("route", "l0"), ("f", "r0")]
    assert after(plan).schema == pa.schema(
        [("ts", TIME), ("route", pa.string()), ("f", pa.int32())]
    )
    assert pickle.loads(pickle.dumps(plan)).fingerprint == plan.fingerprint


def test_conditions_on_one_side_go_into_its_prefix() -> None:
    plan = lower(
        sql(f"SELECT tip {FROM} ON r.fare = c.fare AND tip > 1 WHERE c.route = 'A' AND paid")
    )
    assert [p.sql_where for p in only(plan).prefixes] == ["`tip` > 1 AND `paid`", "`route` = 'A'"]
    assert joined(plan).conjuncts == ("r.fare = c.fare",)


def test_conditions_stay_above_a_window_that_counts_tuples() -> None:
    plan = lower(
        sql(
            f"SELECT tip FROM rides r [ROWS 5] JOIN calls c {HOUR} ON tip > 1 AND c.fare > 2 "
            "WHERE paid"
        )
    )
    assert [p.sql_where for p in only(plan).prefixes] == [None, "`fare` > 2"]
    assert joined(plan).conjuncts == ("r.tip > 1", "r.paid")
    assert joined(plan).spec.left.extent == WindowExtent(None, 5)
    assert joined(plan).spec.right.extent == WindowExtent(3_600_000_000, None)


def test_unions_and_subqueries_below_a_join() -> None:
    plan = lower(
        sql(
            "SELECT x, route FROM (SELECT fare AS x FROM calls UNION ALL SELECT fare FROM rides) "
            f"{HOUR} JOIN (SELECT route FROM calls WHERE fare > 3) {HOUR} ON x > 5"
        )
    )
    assert joined(plan).sides == (0, 0, 1)
    assert [p.origin for p in only(plan).prefixes] == [0, 1, 0]
    assert plan.streams == (CALLS, RIDES)
    assert [p.sql_outputs for p in only(plan).prefixes] == [
        (("l0", "CAST(`fare` AS DOUBLE)"),),
        (("l0", "`fare`"),),
        (("r0", "`route`"),),
    ]
    assert only(plan).prefixes[2].sql_where == "`fare` > 3"


def test_selects_and_filters_above_a_join() -> None:
    plan = lower(
        sql(
            "SELECT d * 2 AS e FROM (SELECT r.fare - c.fare AS d, r.tip "
            f"{FROM} ON r.route = c.route) WHERE d > 1 AND tip < 9"
        )
    )
    assert joined(plan).conjuncts == ("r.route = c.route", "(r.fare - c.fare) > 1")
    assert only(plan).prefixes[0].sql_where == "`tip` < 9"
    assert [(n, describe(e)) for n, e in after(plan).outputs] == [("e", "(l1 - r1) * 2.0")]


def test_the_event_time_of_a_pair() -> None:
    plan = lower(sql(f"SELECT HOUR(ts) AS h, r.ts AS began {FROM} ON TRUE WHERE HOUR(ts) > 5"))
    assert [(n, describe(e)) for n, e in after(plan).outputs] == [
        ("h", "HOUR(ts)"),
        ("began", "l0"),
    ]
    assert joined(plan).conjuncts == ("HOUR(GREATEST(r.ts, c.ts)) > 5",)
    assert only(plan).prefixes[0].sql_outputs == (("l0", "`dropoff_time`"),)


def test_all_columns_without_a_select() -> None:
    plan = lower(calls.join(rides.select("tip"), within=60, on=left.fare > right.tip).node)
    assert after(plan).schema.names == ["ts", "route", "fare", "tip"]
    with pytest.raises(QueryError) as caught:
        lower(calls.join(rides, within=60, on=True).node)
    assert str(caught.value) == (
        "join: every column of the result needs a name of its own; got route on both sides. "
        "Select the columns, and rename one of the two with alias()."
    )


def near(lefts: pa.Table, rights: pa.Table) -> np.ndarray:  # type: ignore[type-arg]
    return np.ones(lefts.num_rows, bool)


def test_a_function_is_given_all_columns_under_their_names() -> None:
    plan = lower(calls.join(rides, rows=5, on=near).select(left.fare, "tip").node)
    function = joined(plan).spec.function
    assert function is not None
    assert function.left_names == ("ts", "route", "fare")
    assert function.right_names == ("ts", "dropoff_time", "route", "fare", "tip", "paid", "stops")
    assert len(joined(plan).spec.right.columns) == 7
    assert joined(plan).spec.method == "scan"
    assert pickle.loads(pickle.dumps(joined(plan))).spec.function.call is near
    assert lower(calls.join(rides, rows=5, on=lambda a, b: True).select("tip").node) != plan


# --- what has no kernel ------------------------------------------------------------------------

BY_SPARK = f"SELECT tip {FROM} ON regexp_extract(r.route, '(.)') = c.route"


def typed_by_spark(texts: Sequence[str], schema: pa.Schema) -> Sequence[pa.DataType]:
    return [pa.string() if "REGEXP" in t else schema.field(t.strip("`")).type for t in texts]


def test_spark_evaluates_what_concerns_one_side() -> None:
    plan = lower(sql(BY_SPARK), typed_by_spark)
    assert [p.engine for p in only(plan).prefixes] == ["spark", "arrow"]
    assert only(plan).prefixes[0].sql_outputs[1][1] == "REGEXP_EXTRACT(`route`, '(.)')"
    assert [i.kind for i in joined(plan).spec.intervals] == ["equal"]
    with pytest.raises(UnknownKernel, match="REGEXP_EXTRACT needs Spark"):
        lower(sql(BY_SPARK))


def test_pairs_are_not_evaluated_by_spark() -> None:
    with pytest.raises(QueryError) as caught:
        lower(sql(f"SELECT tip {FROM} ON LEVENSHTEIN(r.route, c.route) < 2"), typed_by_spark)
    assert str(caught.value).startswith("ON: LEVENSHTEIN needs Spark, it is not among")
    assert str(caught.value).endswith(
        "On pairs there is no Spark SQL: compute it from one side, or from the output."
    )


def test_random_numbers_are_refused() -> None:
    with pytest.raises(QueryError, match="must give the same value whenever a batch is replayed"):
        lower(sql(f"SELECT tip, RAND() AS z {FROM} ON TRUE"))
    with pytest.raises(QueryError, match="must give the same value whenever a batch is replayed"):
        lower(sql(f"SELECT tip {FROM} ON r.fare > c.fare + RAND()"))


# --- method and routing ------------------------------------------------------------------------

TWO_BANDS = (
    f"SELECT tip {FROM} ON r.fare BETWEEN c.fare - 9 AND c.fare + 9 AND ABS(r.tip - c.fare) <= 1"
)


def test_methods_without_a_sample() -> None:
    both = planned(f"SELECT tip {FROM} ON ABS(r.fare - c.fare) < 1 AND r.route = c.route")
    assert (both.spec.method, both.spec.index, both.routing) == ("hash", 1, "range")
    assert not both.grid.width
    bands = planned(TWO_BANDS)
    assert (bands.spec.method, bands.spec.index, bands.routing) == ("band", 0, "range")
    assert not bands.grid.width
    assert bands.reasons[0] == (
        "band: r.fare BETWEEN c.fare - 9 AND c.fare + 9 is the first of 2, without a sample"
    )
    bound = planned(f"SELECT tip {FROM} ON r.fare < c.fare")
    assert (bound.spec.method, bound.spec.index) == ("scan", None)
    assert bound.reasons == (
        "scan: the bounds are open at one end, and there is no sample to judge them by",
        "round-robin: there is no equality to route by",
    )
    assert planned(f"SELECT tip {FROM} ON TRUE").spec.predicate == ()
    assert planned(f"SELECT tip {FROM} ON r.route < c.route").reasons[0] == (
        "scan: no conjunct compares a value of one side with one of the other"
    )


def test_asking_for_a_method_and_a_routing() -> None:
    equal = f"SELECT tip {FROM} ON r.route = c.route"
    forced = planned(equal, method="scan", routing="key")
    assert (forced.spec.method, forced.spec.index, forced.routing) == ("scan", None, "key")
    assert forced.reasons == (
        "scan: asked for with --method scan",
        "key: asked for with --routing key",
    )
    assert len(forced.spec.intervals) == 1
    assert (
        planned(equal, routing="round-robin").reasons[1]
        == "round-robin: asked for with --routing round-robin"
    )
    with pytest.raises(OptionError) as caught:
        planned(TWO_BANDS, routing="key")
    assert str(caught.value) == (
        "--routing: key needs an equality of both sides in the join's condition; got none. Leave "
        "it out, or add one."
    )
    with pytest.raises(OptionError, match="--method: must be one of auto, scan; got index"):
        JoinOptions("index")
    with pytest.raises(OptionError, match="--routing: must be one of auto, key, round-robin"):
        JoinOptions(routing="hash")


def first_rows(keys: int) -> pa.Table:
    numbers = np.arange(2000)
    return pa.table(
        {
            "route": pa.array([f"k{i % keys}" for i in numbers]),
            "fare": pa.array(numbers.astype(float)),
            "tip": pa.array(numbers % 10, pa.int32()),
            "dropoff_time": pa.array(numbers * 10_000, pa.timestamp("us", "UTC")),
            "ts": pa.array(numbers * 20_000, pa.timestamp("us", "UTC")),
        }
    )


def sampled(text: str, keys: int = 2000) -> StreamJoin:
    return joined(sampled_plan(text, keys))


def sampled_plan(text: str, keys: int = 2000) -> Plan:
    def rows(definition: StreamDef, columns: Sequence[str]) -> pa.Table:
        table = first_rows(keys).select(columns)
        names = {n: definition.schema.field(n).type for n in columns}
        return table.cast(pa.schema(list(names.items())))

    return lower(sql(text), None, Choices(rows=rows))


def test_the_more_selective_of_two_bands() -> None:
    bands = sampled(TWO_BANDS)
    assert (bands.spec.method, bands.spec.index) == ("band", 1)
    assert bands.reasons[0] == (
        "band: ABS(r.tip - c.fare) <= 1 passes 0.14% of the pairs of the first 2000 and 2000 "
        "tuples, against 0.95%"
    )


def test_a_selective_bound_is_probed_and_another_is_not() -> None:
    wide = sampled(f"SELECT tip {FROM} ON r.fare < c.fare")
    assert wide.spec.method == "scan"
    assert wide.reasons[0] == (
        "scan: the best bound is open at one end: r.fare < c.fare passes 50.02% of the pairs of "
        "the first 2000 and 2000 tuples"
    )
    narrow = sampled(f"SELECT tip {FROM} ON r.fare > c.fare + 1900")
    assert (narrow.spec.method, narrow.spec.index) == ("band", 0)


def test_routing_by_key_while_no_key_is_frequent() -> None:
    equal = f"SELECT tip {FROM} ON r.route = c.route"
    even = sampled(equal)
    assert (even.spec.method, even.routing) == ("hash", "key")
    assert even.reasons[1] == (
        "key: the most frequent key has 0.00% of the first 2000 and 2000 tuples, less than 0.39%"
    )
    skewed = sampled(equal, keys=50)
    assert skewed.routing == "range"
    assert skewed.reasons[1] == (
        "range: the most frequent key has 1.95% of the first 2000 and 2000 tuples, keys would be "
        "uneven from 0.39% on, in cells of their codes: a tuple searches at 1.7 of 16 instances, "
        "by the first 2000 and 2000 tuples"
    )


def test_bands_are_placed_by_range() -> None:
    bands = sampled(TWO_BANDS)
    assert bands.routing == "range"
    assert bands.grid.width > 1
    assert bands.reasons[1] == (
        "range: by the values that the band compares, in cells of 26.03: a tuple searches at 8.7 "
        "of 16 instances, by the first 2000 and 2000 tuples"
    )
    wide = sampled(f"SELECT tip {FROM} ON r.fare BETWEEN c.fare - 900 AND c.fare + 900")
    assert (wide.routing, wide.grid.width) == ("range", 0)
    assert wide.reasons[1] == (
        "range: by the values that the band compares, dealt in turn: cells would spare no work in "
        "the first tuples"
    )
    half = sampled(f"SELECT tip {FROM} ON r.fare > c.fare + 1900")
    assert half.routing == "round-robin", "a bound that is open at one end is everywhere"
    asked = planned(f"SELECT tip {FROM} ON r.route = c.route", routing="range")
    assert asked.reasons[1] == (
        "range: asked for with --routing range, dealt in turn until a survey of its tuples has "
        "found cells"
    )
    for without in (f"SELECT tip {FROM} ON r.route <> c.route", EITHER):
        with pytest.raises(OptionError, match="range needs a band or an equality of both sides"):
            planned(without, routing="range")


def test_a_sample_that_is_empty_or_fails_is_no_sample() -> None:
    def none(definition: StreamDef, columns: Sequence[str]) -> pa.Table | None:
        return None

    def empty(definition: StreamDef, columns: Sequence[str]) -> pa.Table:
        return definition.schema.empty_table().select(columns)

    for rows in (none, empty):
        plan = joined(lower(sql(TWO_BANDS), None, Choices(rows=rows)))
        assert plan.reasons[0].endswith("is the first of 2, without a sample")


# --- disjunctions ------------------------------------------------------------------------------

EITHER = f"SELECT tip {FROM} ON r.tip IN (c.fare, c.fare + 1)"


def test_a_disjunction_is_a_union_of_indexes() -> None:
    either = planned(EITHER)
    assert (either.spec.method, either.spec.index, either.routing) == ("union", None, "round-robin")
    assert either.reasons == (
        "union: r.tip IN (c.fare, c.fare + 1) has an index for each of 2 branches",
        "round-robin: there is no equality to route by",
    )
    assert [[i.text for i in b.indexed] for b in either.spec.branches] == [
        ["r.tip = c.fare"],
        ["r.tip = (c.fare + 1)"],
    ]
    assert planned(EITHER, method="scan").spec.branches == ()
    assert (
        sampled(EITHER)
        .reasons[0]
        .endswith("branches, which pass 0.10% of the pairs of the first 2000 and 2000 tuples")
    )


def test_conditions_of_one_side_are_part_of_the_index_of_a_branch() -> None:
    bands = planned(
        f"SELECT tip {FROM} ON CASE WHEN r.paid THEN r.route = c.route "
        "ELSE r.fare BETWEEN c.fare - 1 AND c.fare + 1 END"
    )
    equal, band = bands.spec.branches
    assert [i.text for i in equal.indexed] == ["r.route = c.route", "r.paid"]
    assert [i.kind for i in band.indexed] == ["band"]
    alone = planned(f"SELECT tip {FROM} ON r.route = c.route OR r.paid")
    assert [i.text for i in alone.spec.branches[1].indexed] == ["r.paid"]


def test_what_all_branches_have_is_in_the_index_and_may_route() -> None:
    common = f"SELECT tip {FROM} ON (r.tip = c.fare AND r.paid) OR (r.tip = c.fare AND c.fare > 1)"
    assert planned(common).spec.method == "hash"
    assert planned(common, routing="key").routing == "key"


def test_a_branch_without_an_index_makes_a_scan() -> None:
    scan = planned(f"SELECT tip {FROM} ON r.route = c.route OR r.fare <> c.fare")
    assert scan.spec.method == "scan"
    assert scan.reasons[0] == (
        "scan: r.route = c.route OR r.fare <> c.fare has no index for its branch r.fare <> c.fare"
    )


def test_a_union_replaces_an_index_that_gives_far_more_pairs() -> None:
    both = f"SELECT tip {FROM} ON r.route = c.route AND (r.tip = c.fare OR r.tip = c.fare + 1)"
    assert planned(both).spec.method == "hash"
    assert sampled(both, keys=2).spec.method == "union"
    assert sampled(both, keys=2).spec.branches[0].equalities[0].text == "r.route = c.route"
    assert sampled(both, keys=2000).spec.method == "hash"


def test_explain_shows_the_branches() -> None:
    node = sql(EITHER)
    assert (
        "    method: union: r.tip IN (c.fare, c.fare + 1) has an index for each of 2 branches\n"
        "    index of branch 1: r.tip = c.fare\n"
        "    index of branch 2: r.tip = (c.fare + 1)\n"
        "    then: r.tip IN (c.fare, c.fare + 1) (compiled)\n"
        "    routing: round-robin: there is no equality to route by\n"
    ) in explain([Output(None, node)], lower(node))


# --- comparisons without an index --------------------------------------------------------------


def test_comparisons_to_expect_are_those_of_full_windows() -> None:
    """100 tuples a second on the left and 50 on the right, an hour of either."""
    either = sampled(f"SELECT tip {FROM} ON COALESCE(r.fare <> c.fare, r.route <> c.route)")
    about = (
        "about 36,000,000 a second of event time with full windows, at 100 tuples a second on the "
        "left and 50 on the right in the first rows"
    )
    assert either.expected == (f"comparisons: {about}",)
    assert either.traits.warnings == (
        "no index fits the condition, so every pair in the windows is compared; expect "
        f"{about}, where a core makes about 10,000,000. Add an equality or a band to the "
        "condition, or shorten the windows; explain tells which part has no index.",
    )
    assert f"comparisons: {about}" in either.details({})
    compiled = sampled(f"SELECT tip {FROM} ON r.fare <> c.fare OR r.route = c.route")
    assert (compiled.expected, compiled.traits.warnings) == (either.expected, ())


def test_few_comparisons_are_no_warning() -> None:
    counted = sampled("SELECT tip FROM rides r [ROWS 9] JOIN calls c [ROWS 5] ON r.fare <> c.fare")
    assert counted.expected[0].startswith("comparisons: about 950 a second of event time")
    assert counted.traits.warnings == ()
    tested = sampled(f"SELECT tip {FROM} ON r.fare < c.fare")
    assert (tested.spec.method, tested.traits.warnings) == ("scan", ())
    assert tested.expected[0].startswith("comparisons: ")
    for indexed in (f"SELECT tip {FROM} ON r.route = c.route", f"SELECT tip {FROM} ON TRUE"):
        assert not any("comparisons" in line for line in sampled(indexed).expected)


def test_rows_to_expect_are_told_from_the_keys_and_full_windows() -> None:
    """An hour has 360,000 tuples of the left side and 180,000 of the right."""
    every = sampled(f"SELECT tip {FROM} ON TRUE")
    about = "up to about 240,000 rows for each tuple with full windows"
    assert every.expected == (f"output: {about}, by the first rows of its streams",)
    assert every.traits.warnings == (
        f"expect {about}: the values of its condition are few. Add a condition, or shorten the "
        "windows, unless you need them all.",
    )
    text = f"SELECT tip {FROM} ON TRUE"
    shown = explain([Output(None, sql(text))], sampled_plan(text))
    assert f"    warning: {every.traits.warnings[0]}\n" in shown
    few = sampled("SELECT tip FROM rides r [ROWS 9] JOIN calls c [ROWS 5] ON r.fare = c.fare")
    assert few.expected[0].startswith("output: up to about ")
    assert few.traits.warnings == ()


# --- fingerprint and explain -------------------------------------------------------------------


def mark(text: str, **options: str) -> str:
    return lower(sql(text), None, Choices(JoinOptions(**options))).fingerprint  # type: ignore[arg-type]


def test_the_fingerprint_is_of_the_meaning() -> None:
    equal = f"SELECT tip {FROM} ON r.route = c.route"
    assert mark(equal) == mark(equal, method="scan", routing="key")
    assert mark(equal) == mark(equal.replace("ON", "ON TRUE AND"))
    assert mark(equal) == mark(
        f"SELECT a.tip FROM rides {HOUR} a JOIN calls {HOUR} b ON (a.route = b.route)"
    )
    python = rides.join(calls, within="1 hour", on=left.route == right.route).select("tip")
    assert mark(equal) == lower(python.node).fingerprint
    others = [
        equal.replace("=", "<"),
        equal.replace(HOUR, "[RANGE 2 HOURS]", 1),
        equal.replace(HOUR, "[ROWS 5]"),
        equal.replace("SELECT tip", "SELECT tip AS t"),
        equal.replace("SELECT tip", "SELECT tip + 1 AS tip"),
        equal + " WHERE tip > 1",
        f"SELECT tip FROM calls AS c {HOUR} JOIN rides AS r {HOUR} ON r.route = c.route",
    ]
    marks = {mark(equal), *(mark(other) for other in others)}
    assert len(marks) == len(others) + 1


def test_explain() -> None:
    node = sql(
        "SELECT tip FROM rides [RANGE 5 MINUTES] AS r JOIN calls [ROWS 9] AS c "
        "ON r.fare < c.fare + 10 AND r.route <> c.route AND r.fare > c.fare - 10 WHERE tip > 1"
    )
    text = explain([Output(None, node)], lower(node))
    assert (
        "     └─ join r [RANGE 5 minutes] and c [ROWS 9] on r.fare < c.fare + 10 AND "
        "r.route <> c.route AND r.fare > c.fare - 10\n"
        "        ├─ stream rides\n"
        "        └─ stream calls\n"
    ) in text
    assert "      read + filter + project + sort: Arrow task, map side\n" in text
    assert (
        "  1 join: join, keeps 5 minutes of the left side and 9 tuples of the right\n"
        "    takes rides\n"
    ) in text
    assert (
        "      read + project + sort: Arrow task, map side\n"
        "    method: band: r.fare < c.fare + 10 AND r.fare > c.fare - 10 is a band\n"
        "    index: r.fare < c.fare + 10 AND r.fare > c.fare - 10\n"
        "    then: r.route <> c.route (compiled)\n"
        "    routing: range: by the values that the band compares, dealt in turn until a survey "
        "of its tuples has found cells\n"
        "    pairs: one task per instance\n"
        "    rows by ts, later tuple, earlier tuple: collect\n"
        "output, of join\n"
    ) in text


def test_explain_of_a_function() -> None:
    node = calls.join(rides, rows=5, on=near).select("tip").node
    text = explain([Output(None, node)], lower(node))
    assert "join left [ROWS 5] and right [ROWS 5] on the function near" in text
    assert "    then: the function tests.plan.test_lower_join.near\n" in text


def test_intervals_are_over_the_columns_of_prefixes() -> None:
    (interval,) = planned(f"SELECT tip {FROM} ON r.tip = c.fare").spec.intervals
    assert isinstance(interval, PairInterval)
    assert (describe(interval.left_value), describe(interval.right_value)) == ("l0", "r0")
