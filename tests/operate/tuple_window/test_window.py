"""Windows of tuples against the tuple-at-a-time twin, over any cut, order, owner and pruning."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost import calls, times_dearer
from tests.operate.aggregate.stream import (
    NAN,
    POOLS,
    functions,
    lines,
    parameters_of,
    rows_for,
    same,
    sum_of_products,
)
from tests.oracle.tuple_window import tuple_windows
from tidegate.errors import QueryError, StateError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.user import Aggregator, State
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.window import advance, live
from tidegate.route.bucket import bucket_of

USERS = {"u": sum_of_products}
BUCKETS = 4
COUNT = (Function("n", "count"),)
FLOATS = ("sum", "mean", "var", "stddev")
PAIRS = ("corr", "covar_samp", "covar_pop", "min_by", "max_by")
KINDS = (*FLOATS, *PAIRS, "quantile", "distinct", "min", "max", "first", "last", "count")
KINDS += ("approx_count_distinct", "mode", "array_agg", "collect_set", "percentile_disc")


@st.composite
def specs(draw: st.DrawFn) -> TupleSpec:
    pairs = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda p: (max(p), min(p)))
    special = st.sampled_from([(1, 1), (5, 5), (6, 1), (8, 4), (12, 4), (24, 1), (24, 2)])
    rows, slide = draw(st.one_of(pairs, special))
    names = draw(st.lists(st.sampled_from(sorted(POOLS)), max_size=2, unique=True))
    keys = tuple((f"k_{name}", POOLS[name][0]) for name in names)
    return spec_of(rows, slide, keys, draw(functions()))


def spec_of(
    rows: int,
    slide: int,
    keys: tuple[tuple[str, pa.DataType], ...],
    chosen: tuple[Function, ...],
) -> TupleSpec:
    used = sorted({a for f in chosen for a in f.arguments})
    return TupleSpec(rows, slide, keys, tuple((x, POOLS[x][0]) for x in used), chosen)


def table(spec: TupleSpec, rows: list[dict[str, Any]]) -> pa.Table:
    """New tuples as they come to an owner, with the buckets of their keys."""
    fields = [(n, pa.int64()) for n in ("ts", "src", "seq")]
    schema = pa.schema([*fields, *spec.keys, *spec.arguments])
    made = pa.Table.from_pylist(rows, schema=schema)
    keys = [made.column(name).combine_chunks() for name, _ in spec.keys]
    return made.add_column(0, "bucket", pa.array(bucket_of(keys, BUCKETS, rows=len(rows))))


def in_order(results: pa.Table) -> pa.Table:
    return results.sort_by([(f"trigger_{n}", "ascending") for n in ("ts", "src", "seq")])


def triggers(results: pa.Table) -> list[tuple[Any, ...]]:
    return [line[-3:] for line in lines(results)]


def check(spec: TupleSpec, mine: list[tuple[Any, ...]], twin: list[tuple[Any, ...]]) -> None:
    """The same windows in the same order; the twin's rows have the columns of the result."""
    assert [(r[:2], r[-3:]) for r in mine] == [(r[:2], r[-3:]) for r in twin]
    by_name = {f.name: f for f in spec.functions}
    chosen = [by_name.get(name) for name in spec.result_schema.names]
    for ours, theirs in zip(mine, twin, strict=True):
        for function, a, b in zip(chosen, ours, theirs, strict=True):
            assert same(a, b), (function, a, b, ours, theirs)


def run(
    spec: TupleSpec, tuples: pa.Table, cuts: list[int], prune: bool = True
) -> tuple[pa.Table, pa.Table]:
    """One owner over tuples in the total order, cut into batches; the results and what is held."""
    held, results = spec.state_schema.empty_table(), [spec.result_schema.empty_table()]
    for a, b in pairwise([0, *cuts, tuples.num_rows]):
        made, state = advance(spec, held, tuples.slice(a, b - a))
        results.append(made)
        held = pa.concat_tables([held, state])
        held = held.filter(pa.array(live(spec, held))) if prune else held
    return pa.concat_tables(results).combine_chunks(), held


@settings(max_examples=max(150, settings().max_examples))
@given(st.data())
def test_any_course_gives_what_the_twin_gives(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = sorted(data.draw(rows_for(spec)), key=lambda r: (r["ts"], r["src"], r["seq"]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    owners = data.draw(st.lists(st.integers(0, 1), min_size=BUCKETS, max_size=BUCKETS))
    chance = np.random.default_rng(data.draw(st.integers(0, 1000)))
    held = spec.state_schema.empty_table()
    mine: list[tuple[Any, ...]] = []
    for a, b in pairwise([0, *cuts, len(rows)]):
        news = shuffled(table(spec, rows[a:b]), chance)
        outputs, states = [], []
        for owner in (0, 1):
            buckets = [i for i, o in enumerate(owners) if o == owner]
            made, state = advance(spec, of_buckets(held, buckets), of_buckets(news, buckets))
            assert made.schema == spec.result_schema
            assert state.schema == spec.state_schema
            made.validate(full=True)
            state.validate(full=True)
            assert triggers(made) == sorted(triggers(made))
            outputs.append(made)
            states.append(state)
        mine += lines(in_order(pa.concat_tables(outputs)))
        held = pruned(spec, shuffled(pa.concat_tables([held, *states]), chance), data.draw, chance)
    check(spec, mine, tuple_windows(spec, rows, users=USERS))


def shuffled(rows: pa.Table, chance: np.random.Generator) -> pa.Table:
    return rows.take(pa.array(chance.permutation(rows.num_rows)))


def of_buckets(rows: pa.Table, buckets: list[int]) -> pa.Table:
    return rows.filter(pa.array(np.isin(rows["bucket"].to_numpy(), buckets)))


def pruned(spec: TupleSpec, held: pa.Table, draw: Any, chance: np.random.Generator) -> pa.Table:
    """All, none or some of the dead tuples gone; the oldest first where windows do not overlap."""
    keep = live(spec, held)
    way = draw(st.sampled_from(["none", "all", "some"]))
    if way == "none":
        return held
    if way == "some" and spec.slide < spec.rows:
        keep = keep | chance.integers(0, 2, held.num_rows).astype(bool)
    elif way == "some":
        keep = keep | (held["rank"].to_numpy() >= draw(st.integers(0, 12)))
    return held.filter(pa.array(keep))


@given(st.integers(1, 12), st.integers(1, 12), st.lists(st.integers(0, 30), max_size=4))
def test_a_tuple_is_live_while_a_window_to_come_has_it(a: int, b: int, counts: list[int]) -> None:
    spec = TupleSpec(max(a, b), min(a, b), (("k", pa.int64()),), (), COUNT)
    rows = [{"ts": i, "src": 0, "seq": i, "k": k} for k, c in enumerate(counts) for i in range(c)]
    _, state = advance(spec, spec.state_schema.empty_table(), table(spec, rows))
    state = shuffled(state, np.random.default_rng(a))
    starts = [w * spec.slide for w in range(40)]
    expected = []
    for k, place in zip(state["k"].to_pylist(), state["rank"].to_pylist(), strict=True):
        to_come = [s for s in starts if s + spec.rows > counts[k]]
        expected.append(place >= min(to_come))
    assert live(spec, state).tolist() == expected


def test_the_ranks_of_a_group_go_on_from_what_is_held() -> None:
    spec = TupleSpec(3, 1, (("k", pa.string()),), (), COUNT)
    rows = [{"ts": i, "src": 0, "seq": i, "k": "ab"[i % 2]} for i in range(8)]
    results, state = advance(spec, spec.state_schema.empty_table(), table(spec, rows[:5][::-1]))
    assert lines(results) == [(0, 4, "a", 3, 4, 0, 4)]
    assert state["rank"].to_pylist() == [0, 0, 1, 1, 2]
    held = state.filter(pa.array(live(spec, state)))
    assert held["rank"].to_pylist() == [0, 1, 1, 2]
    results, state = advance(spec, held, table(spec, rows[5:]))
    assert lines(results) == [
        (1, 5, "b", 3, 5, 0, 5),
        (2, 6, "a", 3, 6, 0, 6),
        (3, 7, "b", 3, 7, 0, 7),
    ]
    assert state["rank"].to_pylist() == [2, 3, 3]


def test_a_group_without_live_tuples_may_be_forgotten_and_starts_again() -> None:
    spec = TupleSpec(3, 3, (), (), COUNT)
    rows = table(spec, [{"ts": i, "src": 0, "seq": i} for i in range(11)])
    kept, held = run(spec, rows, [6], prune=False)
    assert held["rank"].to_pylist() == list(range(11))
    pruned_away, held = run(spec, rows, [6])
    assert held["rank"].to_pylist() == [3, 4]
    assert [line[:2] for line in lines(kept)] == [(0, 2), (3, 5), (6, 8)]
    assert pruned_away.equals(kept)


def test_null_and_nan_are_groups_and_the_zeros_are_one() -> None:
    spec = TupleSpec(2, 2, (("k", pa.float64()),), (), COUNT)
    keys = [None, NAN, -0.0, 1.0, 0.0, NAN, None]
    rows = [{"ts": i, "src": 0, "seq": i, "k": k} for i, k in enumerate(keys)]
    first, held = advance(spec, spec.state_schema.empty_table(), table(spec, rows[:4]))
    results, _ = advance(spec, held, table(spec, rows[4:]))
    assert first.num_rows == 0
    assert repr(lines(results)) == repr(
        [(2, 4, 0.0, 2, 4, 0, 4), (1, 5, NAN, 2, 5, 0, 5), (0, 6, None, 2, 6, 0, 6)]
    )
    assert math.copysign(1, held["k"].to_pylist()[2]) == 1


def test_tuples_of_one_time_count_in_the_order_of_source_and_sequence() -> None:
    chosen = tuple(Function(f"a_{k}", k, ("int",), (pa.int64(),)) for k in ("first", "last"))
    spec = spec_of(2, 2, (), chosen)
    places = [(1, 0), (0, 7), (0, 3), (1, -1)]
    rows = [{"ts": 5, "src": s, "seq": q, "int": i} for i, (s, q) in enumerate(places)]
    results, _ = advance(spec, spec.state_schema.empty_table(), table(spec, rows))
    assert lines(results) == [(5, 5, 2, 1, 5, 0, 7), (5, 5, 3, 0, 5, 1, 0)]


def measured(rows: int, groups: int, seed: int) -> pa.Table:
    """Float-heavy tuples in the total order, with spread magnitudes and some NULL."""
    chance = np.random.default_rng(seed)
    values = chance.normal(size=rows) * 10.0 ** chance.integers(-6, 6, rows)
    zeros = np.zeros(rows, np.int64)
    columns = {"bucket": zeros.astype(np.int32), "ts": np.sort(chance.integers(0, rows, rows))}
    columns |= {"src": zeros, "seq": np.arange(rows), "k": chance.integers(0, groups, rows)}
    made = pa.table(columns).append_column("x", pa.array(values, mask=chance.random(rows) < 0.02))
    other = np.round(chance.normal(size=rows), 1)
    return made.append_column("y", pa.array(other, mask=chance.random(rows) < 0.02))


def measures(rows: int, slide: int, kinds: tuple[str, ...] = KINDS) -> TupleSpec:
    chosen = []
    for k in kinds:
        columns = ("x", "y") if k in PAIRS else ("x",)
        types = (pa.float64(),) * len(columns)
        chosen.append(Function(f"a_{k}", k, columns, types, parameters_of(k, 0.3)))
    arguments = (("x", pa.float64()), ("y", pa.float64()))
    return TupleSpec(rows, slide, (("k", pa.int64()),), arguments, tuple(chosen))


@pytest.mark.parametrize(
    ("rows", "slide"),
    [
        (100, 10),  # panes that are shared, values that slide
        (100, 4),  # a tree over panes
        (80, 3),  # a tree over tuples
        (200, 100),  # panes
        (200, 99),  # no panes
        (64, 64),  # no overlap
        (5000, 4999),  # longer than a block
        (9000, 4500),  # panes longer than a block
        (5000, 5000),
    ],
)
def test_the_bits_do_not_depend_on_the_cut_or_on_other_groups(rows: int, slide: int) -> None:
    spec = measures(rows, slide)
    tuples = measured(max(40 * rows // 10, 4000), 3, rows + slide)
    size = tuples.num_rows
    whole, _ = run(spec, tuples, [])
    assert whole.num_rows > 2
    for cuts in ([size // 2], sorted([size // 7, size // 3, size // 3 + 1, size - 5])):
        assert run(spec, tuples, cuts)[0].equals(whole)
        assert run(spec, tuples, cuts, prune=False)[0].equals(whole)
    for group in range(3):
        alone, _ = run(spec, tuples.filter(tuples["k"].to_numpy() == group), [])
        assert alone.equals(whole.filter(whole["k"].to_numpy() == group).combine_chunks())


@pytest.mark.whole
@pytest.mark.parametrize(("rows", "slide"), [(100, 10), (100, 7), (5000, 1250), (5000, 4999)])
def test_long_windows_are_what_the_twin_says(rows: int, slide: int) -> None:
    spec = measures(rows, slide)
    tuples = measured(3 * rows, 1, 11)
    results, _ = run(spec, tuples, [rows, 2 * rows + 17])
    check(spec, lines(results), tuple_windows(spec, tuples.to_pylist()))


class Climb(Aggregator):
    """How far the values go up and down on their way: the order of the tuples decides."""

    state = {"first": pa.int64(), "last": pa.int64(), "way": pa.int64(), "any": pa.bool_()}  # noqa: RUF012
    result = pa.int64()

    def init(self, n: int) -> State:
        zeros = [np.zeros(n, np.int64) for _ in range(3)]
        return dict(zip(self.state, [*zeros, np.zeros(n, bool)], strict=True))

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        values = columns[0].to_numpy()
        other = {"first": values, "last": values, "way": np.zeros_like(values)}
        return self.merge(state, groups, {**other, "any": np.ones(len(values), bool)})

    def merge(self, state: State, groups: Any, other: State) -> State:
        for i, g in enumerate(groups):
            step = abs(other["first"][i] - state["last"][g]) if state["any"][g] else 0
            state["first"][g] = state["first"][g] if state["any"][g] else other["first"][i]
            state["way"][g] += step + other["way"][i]
            state["last"][g], state["any"][g] = other["last"][i], True
        return state

    def finish(self, state: State) -> pa.Array:
        return pa.array(state["way"])


def climb(arguments: list[tuple[Any, ...]]) -> int:
    return sum(abs(b - a) for (a,), (b,) in pairwise(arguments))


@pytest.mark.parametrize(
    ("rows", "slide"), [(20, 10), (20, 7), (9000, 3000), (9000, 4500), (9000, 8999)]
)
def test_tuples_are_folded_and_merged_in_the_total_order(rows: int, slide: int) -> None:
    chosen = (Function("u", "user", ("x",), (pa.int64(),), (Climb(),)),)
    spec = TupleSpec(rows, slide, (), (("x", pa.int64()),), chosen)
    size = 2 * rows
    values = np.random.default_rng(rows).integers(0, 1000, size)
    zeros, numbers = np.zeros(size, np.int64), np.arange(size)
    columns = {"bucket": zeros.astype(np.int32), "ts": numbers, "src": zeros, "seq": numbers}
    tuples = pa.table({**columns, "x": values})
    results, _ = run(spec, tuples, [rows - 3])
    assert lines(results) == tuple_windows(spec, tuples.to_pylist(), {"u": climb})


@pytest.mark.parametrize(("rows", "slide"), [(40, 10), (40, 7)])
def test_many_windows_are_expanded_in_steps(
    rows: int, slide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, tuples = measures(rows, slide, ("min", "max_by", "last")), measured(2000, 5, 3)
    empty = spec.state_schema.empty_table()
    whole, _ = advance(spec, empty, tuples)
    monkeypatch.setattr("tidegate.operate.tuple_window.fill._EXPANSION_LIMIT", 3 * rows)
    stepped, _ = advance(spec, empty, tuples)
    assert stepped["a_min"].num_chunks == -(-whole.num_rows // 3)
    assert stepped.combine_chunks().equals(whole.combine_chunks())


def test_windows_that_overlap_much_cost_little_more_than_their_tuples() -> None:
    """Windows of two thousand tuples, folded apart, would cost sixteen times those of 125."""
    tuples = measured(42_000, 1, 9)

    def windows_of(rows: int) -> pa.Table:
        spec = measures(rows, 1, ("sum", "var", "quantile", "distinct", "max", "last"))
        return advance(spec, spec.state_schema.empty_table(), tuples)[0]

    assert times_dearer(lambda: windows_of(2000), lambda: windows_of(125), turns=2) < 5
    results = windows_of(2000)
    assert results.num_rows == 40_001
    x = tuples["x"].to_numpy(zero_copy_only=False)
    for place in (0, 1, 17_000, 40_000):
        window = x[place : place + 2000]
        made = results.slice(place, 1).to_pylist()[0]
        assert made["a_max"] == np.nanmax(window)
        assert made["a_sum"] == pytest.approx(math.fsum(window[~np.isnan(window)]), rel=1e-12)
        assert made["a_distinct"] == len(np.unique(window[~np.isnan(window)]))
        assert made["a_quantile"] == pytest.approx(np.nanquantile(window, 0.3), rel=1e-12)


def test_a_group_that_gets_nothing_new_costs_no_window() -> None:
    spec = measures(10, 5)
    tuples = measured(400, 4, 5)
    held = run(spec, tuples, [], prune=False)[1]
    news = tuples.filter(tuples["k"].to_numpy() == 2).slice(0, 20)
    later = pa.array(news["ts"].to_numpy() + 10_000)
    news = news.set_column(1, "ts", later)
    results, state = advance(spec, held, news)
    assert set(results["k"].to_pylist()) == set(state["k"].to_pylist()) == {2}
    assert results.num_rows == 4


def test_nothing_in_gives_nothing_out() -> None:
    spec, tuples = measures(3, 1), measured(20, 2, 6)
    empty = spec.state_schema.empty_table()
    results, state = advance(spec, empty, tuples.slice(0, 0))
    assert results.equals(spec.result_schema.empty_table())
    assert state.equals(empty)
    _, held = advance(spec, empty, tuples)
    assert advance(spec, held, tuples.slice(0, 0)) == (results, state)
    assert live(spec, empty).tolist() == []
    assert advance(spec, empty, tuples.slice(0, 1))[0].equals(results)


def test_columns_may_come_in_chunks_and_slices() -> None:
    spec, tuples = measures(7, 3), measured(300, 4, 7)
    chunked = pa.concat_tables([tuples.slice(0, 100), tuples.slice(100, 1), tuples.slice(101)])
    empty = spec.state_schema.empty_table()
    for mine, other in zip(
        advance(spec, empty, chunked), advance(spec, empty, tuples), strict=True
    ):
        assert mine.equals(other)


def test_a_window_that_has_lost_a_tuple_is_an_error() -> None:
    spec = TupleSpec(4, 2, (), (), COUNT)
    tuples = table(spec, [{"ts": i, "src": 0, "seq": i} for i in range(4)])
    _, held = advance(spec, spec.state_schema.empty_table(), tuples.slice(0, 3))
    twice = held.slice(1, 1)
    for wrong in (
        held.slice(1),
        pa.concat_tables([held, twice]),
        pa.concat_tables([held.slice(1), twice]),
    ):
        with pytest.raises(StateError, match="the 4 tuples of the windows must be held, each once"):
            advance(spec, wrong, tuples.slice(3))


def test_a_spec_pickles_and_compares_by_value() -> None:
    spec = measures(5, 2)
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert again.result_schema == spec.result_schema


def test_a_spec_that_cannot_run_cannot_be_made() -> None:
    for rows, slide in ((5, 6), (5, 0), (0, 0)):
        with pytest.raises(QueryError, match="0 < SLIDE <= ROWS is required"):
            TupleSpec(rows, slide, (), (), COUNT)
    with pytest.raises(QueryError, match="GROUP BY k: a type that can be compared"):
        TupleSpec(5, 5, (("k", pa.list_(pa.int64())),), (), COUNT)
    with pytest.raises(QueryError, match="column names must be unique"):
        TupleSpec(5, 5, (("x", pa.int64()),), (("x", pa.int64()),), COUNT)


def test_every_tuple_costs_arrays_and_not_python() -> None:
    """Two hundred thousand tuples, each in ten windows: row by row this would take minutes."""
    spec = measures(100, 10, ("sum", "var", "quantile", "max", "last"))
    tuples = measured(200_000, 1000, 8)
    results, _ = advance(spec, spec.state_schema.empty_table(), tuples)
    assert calls(lambda: advance(spec, spec.state_schema.empty_table(), tuples)) < 20_000
    counts = np.bincount(tuples["k"].to_numpy())
    assert results.num_rows == int(((counts[counts >= 100] - 100) // 10 + 1).sum())
