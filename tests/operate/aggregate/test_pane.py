"""Aggregation by panes against the row-at-a-time twin, over any cut, merge, owner and frontier."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operate.aggregate.stream import (
    NAN,
    POOLS,
    Course,
    by_hash,
    courses,
    lines,
    parameters_of,
    rows_for,
    run,
    same,
    specs,
    sum_of_products,
    table,
)
from tests.oracle.aggregate import sort_key, windows
from tidegate.batch import MAX_US, MIN_US, to_bytes
from tidegate.errors import QueryError, TaskError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.user import Aggregator, State
from tidegate.state.segment.segment import _canonical

USERS = {"u": sum_of_products}


def check(spec: AggregateSpec, mine: list[tuple[Any, ...]], twin: list[tuple[Any, ...]]) -> None:
    width = 2 + len(spec.keys)
    assert [r[:2] for r in mine] == [r[:2] for r in twin]
    for ours, theirs in zip(mine, twin, strict=True):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            function = spec.functions[i - width] if i >= width else None
            assert same(a, b), (function, a, b, ours, theirs)


def place(spec: AggregateSpec, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where a result stands in the output: by window end, then by key."""
    return (row[1], *map(sort_key, row[2 : 2 + len(spec.keys)]))


@settings(max_examples=max(100, settings().max_examples))
@given(st.data())
def test_any_course_gives_what_the_twin_gives(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    tables = run(spec, rows, data.draw(courses(len(rows))))
    for each in tables:
        assert each.schema == spec.result_schema
        assert [place(spec, r) for r in lines(each)] == sorted(place(spec, r) for r in lines(each))
    mine = [line for each in tables for line in lines(each)]
    check(spec, sorted(mine, key=lambda r: place(spec, r)), windows(spec, rows, users=USERS))


@given(st.data())
def test_one_owner_and_one_step_come_out_in_order(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    above = data.draw(st.integers(-50, 50))
    upto = data.draw(st.integers(above, 60))
    closed = close(spec, fold(spec, table(spec, rows), by_hash(8)), above, upto)
    check(spec, lines(closed), windows(spec, rows, above, upto, users=USERS))


@given(st.data())
def test_partials_have_the_declared_schema_order_and_places(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    for partial in (
        fold(spec, table(spec, rows), by_hash(5)),
        merge(spec, [fold(spec, table(spec, rows), by_hash(5))]),
    ):
        partial.validate(full=True)
        assert partial.schema == spec.partial_schema
        places = [
            (r["bucket"], r["pane"], *(sort_key(r[k]) for k, _ in spec.keys))
            for r in partial.to_pylist()
        ]
        assert places == sorted(set(places))
        keys = {
            (r["ts"] // spec.window.pane_us, *(sort_key(r[k]) for k, _ in spec.keys)) for r in rows
        }
        assert {p[1:] for p in places} == keys


@given(st.data())
def test_the_partials_of_one_split_are_merged_already(data: st.DataObject) -> None:
    """So an instance that gets no others takes them as they are, to the bytes of its segment."""
    spec = data.draw(specs())
    folded = fold(spec, table(spec, data.draw(rows_for(spec))), by_hash(5))
    assert to_bytes(_canonical(merge(spec, [folded]))) == to_bytes(_canonical(folded))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(-200, 200))
def test_the_pane_numbers_of_a_frontier(a: int, b: int, frontier: int) -> None:
    spec = AggregateSpec(PaneWindow(max(a, b), min(a, b)), (), (Function("n", "count"),))
    w = spec.window.pane_us
    assert spec.window.sealed_before(frontier) == min(
        p for p in range(-300, 300) if (p + 1) * w > frontier
    )
    covered = [
        k * spec.window.slide_us // w
        for k in range(-400, 400)
        if k * spec.window.slide_us + spec.window.range_us > frontier
    ]
    assert spec.window.needed_from(frontier) == min(covered)


def test_the_infinite_frontiers_seal_and_need_nothing_or_everything() -> None:
    spec = AggregateSpec(PaneWindow(10, 3), (), (Function("n", "count"),))
    for function in (spec.window.sealed_before, spec.window.needed_from):
        assert function(MIN_US) == MIN_US
        assert function(MAX_US) == MAX_US


def measured(rows: int, seed: int) -> tuple[AggregateSpec, pa.Table]:
    """Float-heavy tuples, some groups large, some small, with spread magnitudes."""
    chance = np.random.default_rng(seed)
    keys = np.minimum(chance.geometric(0.01, rows), 300)
    values = chance.normal(size=rows) * 10.0 ** chance.integers(-6, 6, rows)
    kinds = ("sum", "mean", "var", "stddev", "quantile", "distinct", "min", "last")
    kinds += ("approx_count_distinct", "mode", "percentile_disc", "percentile_cont_desc")
    kinds += ("array_agg", "collect_set")
    functions = [
        Function(f"a{i}", kind, ("x",), (pa.float64(),), parameters_of(kind, 0.3))
        for i, kind in enumerate(kinds)
    ]
    for kind in ("corr", "covar_samp", "covar_pop", "min_by", "max_by"):
        functions.append(Function(f"a_{kind}", kind, ("x", "y"), (pa.float64(),) * 2))
    spec = AggregateSpec(PaneWindow(6000, 2000), (("k", pa.int64()),), tuple(functions))
    ts = np.sort(chance.integers(0, 30000, rows))
    columns = {"ts": ts, "k": keys, "x": values, "src": np.zeros(rows, np.int64)}
    columns["y"] = np.round(chance.normal(size=rows), 1)
    return spec, pa.table({**columns, "seq": np.arange(rows)})


def test_a_bucket_has_the_same_bits_whatever_other_buckets_are_there() -> None:
    spec, rows = measured(20_000, 1)
    cuts = [(0, 3000), (3000, 9000), (9000, 9100), (9100, 20_000)]
    parts = [fold(spec, rows.slice(a, b - a), by_hash(16)) for a, b in cuts]
    merged = merge(spec, parts)
    whole = close(spec, merged, MIN_US, MAX_US)
    for mine in ([3], [0, 1, 2], [5, 9, 15], list(range(8))):
        some = [part.filter(np.isin(part["bucket"].to_numpy(), mine)) for part in parts]
        kept = merge(spec, some)
        assert kept.equals(merged.filter(np.isin(merged["bucket"].to_numpy(), mine)))
        closed = close(spec, kept, MIN_US, MAX_US)
        held = np.isin(whole["k"].to_numpy(), closed["k"].to_numpy())
        assert closed.equals(whole.filter(held).combine_chunks())


def test_merging_is_a_left_fold() -> None:
    spec, rows = measured(8000, 2)
    a, b, c = (fold(spec, rows.slice(i * 2600, 2600), by_hash(4)) for i in range(3))
    assert merge(spec, [merge(spec, [a, b]), c]).equals(merge(spec, [a, b, c]))
    assert merge(spec, [merge(spec, [merge(spec, [a]), b]), c]).equals(merge(spec, [a, b, c]))


def test_windows_closed_one_by_one_have_the_same_bits_as_closed_at_once() -> None:
    spec, rows = measured(8000, 3)
    panes = merge(spec, [fold(spec, rows.slice(i * 1000, 1000), by_hash(4)) for i in range(8)])
    steps = [MIN_US, *range(0, 40_000, 3000), MAX_US]
    parts = [close(spec, panes, a, b) for a, b in pairwise(steps)]
    assert pa.concat_tables(parts).combine_chunks().equals(close(spec, panes, MIN_US, MAX_US))


class Joined(Aggregator):
    """The texts one after the other: the order of merging decides."""

    state = {"text": pa.string()}  # noqa: RUF012
    result = pa.string()

    def init(self, n: int) -> State:
        return {"text": pa.array([""] * n)}

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        texts = state["text"].to_pylist()
        for group, text in zip(groups, columns[0].to_pylist(), strict=True):
            texts[group] += text
        return {"text": texts}

    def merge(self, state: State, groups: Any, other: State) -> State:
        return self.fold(state, groups, other["text"])

    def finish(self, state: State) -> pa.Array:
        return state["text"]


def test_panes_are_merged_in_time_order_however_they_are_stored() -> None:
    spec = AggregateSpec(
        PaneWindow(9, 8), (), (Function("a", "user", ("x",), (pa.string(),), (Joined(),)),)
    )
    panes = fold(spec, pa.table({"ts": np.arange(8), "x": list("abcdefgh")}), by_hash(4))
    for order in (np.arange(8), np.arange(8)[::-1], np.random.default_rng(0).permutation(8)):
        assert lines(close(spec, panes.take(pa.array(order)), 8, 9)) == [(0, 9, "abcdefgh")]


def test_windows_of_thousands_of_panes_do_not_feel_their_neighbours() -> None:
    functions = tuple(
        Function(f"a_{k}", k, ("x",), (pa.float64(),)) for k in ("sum", "mean", "var")
    )
    spec = AggregateSpec(PaneWindow(6000, 5999), (("k", pa.int64()),), functions)
    chance = np.random.default_rng(8)
    ts, keys = np.repeat(np.arange(6000), 5), np.tile(np.arange(5), 6000)
    values = chance.normal(size=30_000) * 10.0 ** chance.integers(-6, 6, 30_000)
    panes = fold(spec, pa.table({"ts": ts, "k": keys, "x": values}), by_hash(16))
    whole = close(spec, panes, 5999, 6000)
    assert len(set(panes["bucket"].to_pylist())) > 2
    for bucket in sorted(set(panes["bucket"].to_pylist())):
        held = panes.filter(panes["bucket"].to_numpy() == bucket)
        alone = close(spec, held, 5999, 6000)
        assert alone.equals(whole.filter(np.isin(whole["k"], alone["k"])).combine_chunks())


def test_many_windows_are_expanded_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, rows = measured(5000, 4)
    panes = fold(spec, rows, by_hash(4))
    whole = close(spec, panes, MIN_US, MAX_US)
    monkeypatch.setattr("tidegate.operate.aggregate.pane.closing._EXPANSION_LIMIT", 50)
    stepped = close(spec, panes, MIN_US, MAX_US)
    assert stepped["window_end"].num_chunks > 5
    assert stepped.combine_chunks().equals(whole.combine_chunks())


def one_group(kind: str, values: list[Any] | np.ndarray[Any, Any], type_: pa.DataType) -> Any:
    function = Function("a", kind, ("x",), (type_,), parameters_of(kind, 0.5))
    spec = AggregateSpec(PaneWindow(10, 10), (), (function,))
    column = pa.array(values, type_)
    zeros = np.zeros(len(column), np.int64)
    rows = pa.table({"ts": zeros, "src": zeros, "seq": np.arange(len(column)), "x": column})
    return close(spec, fold(spec, rows, by_hash(4)), MIN_US, MAX_US)["a"].to_pylist()[0]


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_long_sums_of_floats_are_those_of_fsum(kind: str) -> None:
    values = np.full(1_000_000, 0.1)
    exact = math.fsum(values) / (1 if kind == "sum" else len(values))
    assert one_group(kind, values, pa.float64()) == exact


def test_the_variance_of_large_close_numbers_keeps_its_digits() -> None:
    values = 1e15 + np.tile([4.0, 7.0, 13.0, 16.0], 5000)
    expected = float(Fraction(45, 2) * 20_000 / 19_999)
    assert one_group("var", values, pa.float64()) == expected
    spec = AggregateSpec(PaneWindow(10, 10), (), (Function("a", "var", ("x",), (pa.float64(),)),))
    zeros = np.zeros(len(values), np.int64)
    rows = pa.table({"ts": zeros, "x": values})
    parts = [fold(spec, rows.slice(i, 1000), by_hash(1)) for i in range(0, len(values), 1000)]
    closed = close(spec, merge(spec, parts), MIN_US, MAX_US)["a"].to_pylist()[0]
    assert closed == expected


def test_integers_are_summed_exactly_up_to_the_last_bigint() -> None:
    top = 2**63 - 1
    assert one_group("sum", [top, top, -top, -1], pa.int64()) == top - 1
    assert one_group("sum", [-top, -1], pa.int64()) == -(2**63)
    assert one_group("mean", [top, top, top], pa.int64()) == float(3 * top) / 3
    assert one_group("sum", [2**62, 2**61], pa.uint64()) == 2**62 + 2**61
    assert one_group("mean", [2**64 - 1, 2**64 - 1], pa.uint64()) == 2.0**64
    with pytest.raises(
        TaskError, match=r"SUM: the total of a group must fit in a bigint; got 1844"
    ):
        one_group("sum", [top, top, 2], pa.int64())


def test_decimals_are_summed_exactly_and_averaged_as_spark_does() -> None:
    big = pa.decimal128(38, 2)
    nines = Decimal("9" * 36 + ".99")
    assert one_group("sum", [nines, nines.copy_negate(), Decimal("0.01")], big) == Decimal("0.01")
    with pytest.raises(TaskError, match=r"SUM: the result of a group must fit in decimal\(38,2\)"):
        one_group("sum", [nines, nines], big)
    cents = pa.decimal128(5, 2)
    assert one_group("mean", [Decimal("1.00"), Decimal("1.00"), Decimal("0.00")], cents) == Decimal(
        "0.666667"
    )
    assert one_group("mean", [Decimal("-0.01"), Decimal("0.00")], cents) == Decimal("-0.005000")


def test_a_group_of_nulls_has_a_count_of_zero_and_no_values() -> None:
    for kind in ("sum", "mean", "min", "max", "var", "stddev", "quantile", "first", "last"):
        assert one_group(kind, [None, None], pa.float64()) is None
    assert one_group("count", [None, None], pa.float64()) == 0
    assert one_group("distinct", [None, None], pa.float64()) == 0
    assert one_group("var", [4.0, None], pa.float64()) is None


def test_quantiles_interpolate_as_sparks_percentile() -> None:
    assert one_group("quantile", [1, 2, 4, 10], pa.int64()) == 3.0
    assert math.isnan(one_group("quantile", [1.0, NAN, NAN], pa.float64()))


def test_nothing_in_gives_nothing_out() -> None:
    spec, rows = measured(100, 5)
    empty = fold(spec, rows.slice(0, 0), by_hash(4))
    assert (empty.num_rows, empty.schema) == (0, spec.partial_schema)
    assert merge(spec, []).equals(empty)
    assert merge(spec, [empty, empty]).equals(empty)
    assert close(spec, empty, MIN_US, MAX_US).equals(spec.result_schema.empty_table())
    assert close(spec, fold(spec, rows, by_hash(4)), 5, 5).num_rows == 0


def test_columns_may_come_in_chunks_and_slices() -> None:
    spec, rows = measured(1000, 6)
    chunked = pa.concat_tables([rows.slice(0, 300), rows.slice(300, 1), rows.slice(301)])
    assert fold(spec, chunked, by_hash(4)).equals(fold(spec, rows, by_hash(4)))


def test_a_spec_pickles_and_compares_by_value() -> None:
    spec, _ = measured(1, 7)
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert again.partial_schema == spec.partial_schema


@pytest.mark.parametrize(
    ("kind", "types", "parameters", "message"),
    [
        ("summ", (pa.int64(),), (), "Did you mean sum"),
        ("sum", (pa.string(),), (), "SUM: the argument must be a number; got string"),
        ("stddev", (pa.bool_(),), (), "STDDEV: the argument must be a number; got boolean"),
        ("quantile", (pa.int64(),), (1.5,), "QUANTILE: the fraction must be between 0 and 1; got"),
        ("quantile", (pa.int64(),), (), "the fraction must be a number between 0 and 1; got nothi"),
        ("min", (pa.list_(pa.int64()),), (), "MIN: the argument must have an order; got array"),
        ("mean", (), (), "AVG: every argument must have a type; got 1 arguments and 0 types"),
        ("mean", (pa.int64(),), (0.5,), "AVG: takes one argument; got 1 parameters"),
    ],
)
def test_what_cannot_be_computed_cannot_be_made(
    kind: str, types: tuple[pa.DataType, ...], parameters: tuple[float, ...], message: str
) -> None:
    with pytest.raises(QueryError, match=message.replace(".", r"\.")):
        Function("a", kind, ("x",), types, parameters)


def test_a_window_must_slide_and_keys_must_compare() -> None:
    with pytest.raises(QueryError, match="0 < SLIDE <= RANGE"):
        AggregateSpec(PaneWindow(5, 6), (), ())
    with pytest.raises(QueryError, match="GROUP BY k: a type that can be compared"):
        AggregateSpec(PaneWindow(5, 5), (("k", pa.list_(pa.int64())),), ())


def test_every_pool_can_be_a_key_alone() -> None:
    for type_, pool in POOLS.values():
        spec = AggregateSpec(PaneWindow(4, 2), (("k", type_),), (Function("n", "count"),))
        rows = [{"ts": i % 5, "src": 0, "seq": i, "k": v} for i, v in enumerate(pool * 2)]
        fields = [(n, pa.int64()) for n in ("ts", "src", "seq")]
        made = pa.Table.from_pylist(rows, schema=pa.schema([*fields, ("k", type_)]))
        closed = close(spec, fold(spec, made, by_hash(3)), MIN_US, MAX_US)
        check(spec, lines(closed), windows(spec, rows))


def test_a_course_without_cuts_is_the_plain_run() -> None:
    spec = AggregateSpec(PaneWindow(4, 4), (), (Function("n", "count"),))
    rows = [{"ts": i, "src": 0, "seq": i} for i in range(9)]
    tables = run(spec, rows, Course([], 0, [0], []))
    assert [lines(t) for t in tables] == [[(0, 4, 4), (4, 8, 4), (8, 12, 1)]]


def test_a_percentile_of_decimals_is_the_nearest_double() -> None:
    values = [Decimal("1.005"), None, Decimal("2.675")]
    assert one_group("percentile_disc", values, pa.decimal128(12, 3)) == 1.005
