"""Samples as states of panes: equal for any run, with every type, and ready for any function."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.aggregate.stream import POOLS, Course, by_hash, courses, rows_for, run, table
from tests.oracle import sample as twin
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import QueryError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close_partly, finished, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.sample.sample_state import Sampled, Sampling, lowest_rows, rows_of
from tidegate.operate.kernels.group import Groups


@st.composite
def specs(draw: st.DrawFn) -> AggregateSpec:
    names = tuple(draw(st.lists(st.sampled_from(sorted(POOLS)), max_size=4, unique=True)))
    types = tuple(POOLS[name][0] for name in names)
    k = draw(st.sampled_from([1, 3, 100]))
    sampling = Sampling(draw(st.integers(0, 2**64 - 1)), k, draw(st.booleans()))
    keys = (("k_int", POOLS["int"][0]),) if draw(st.booleans()) else ()
    slide = draw(st.integers(1, 12))
    length = draw(st.sampled_from([slide, 3 * slide, 30 * slide]))
    return AggregateSpec(
        PaneWindow(length, slide), keys, (Function("s", "sampled", names, types, (sampling,)),)
    )


def plain(spec: AggregateSpec, rows: list[dict[str, Any]]) -> dict[Any, tuple[int, list[Any]]]:
    """How many tuples and the sample of each window and group, tuple by tuple."""
    (function,) = spec.functions
    (rule,) = function.parameters
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for row in rows:
        word = twin.priority(rule.seed, row["src"], row["seq"])
        k = row["ts"] // spec.window.slide_us
        while row["ts"] < k * spec.window.slide_us + spec.window.range_us:
            place = (
                k * spec.window.slide_us + spec.window.range_us,
                *(row[name] for name, _ in spec.keys),
            )
            names = zip(function.arguments, function.types, strict=True)
            values = tuple(pa.scalar(row[name], type_).as_py() for name, type_ in names)
            own = groups.setdefault(place, [])
            if not rule.skips_null or not values or any(v is not None for v in values):
                own.append((word, values))
            k -= 1
    return {p: (len(g), twin.sample(g, rule.k)) for p, g in groups.items()}


def states_of(spec: AggregateSpec, closed: pa.Table) -> list[pa.Array]:
    return [closed.column(name).combine_chunks() for name, _ in spec.functions[0].state]


def contents(partials: pa.Table) -> list[Any]:
    """Partials whose lists, which are in any order, are sorted by priority."""
    found = []
    for row in partials.to_pylist():
        lists = [name for name, value in row.items() if isinstance(value, list)]
        rows = sorted(zip(*(row[name] for name in lists), strict=True), key=lambda r: r[0])
        found.append(repr([value for n, value in row.items() if n not in lists] + rows))
    return found


def pieces(spec: AggregateSpec, rows: list[dict[str, Any]], course: Course) -> pa.Table:
    """Partials of rows that were cut, merged in part, and merged."""
    edges = [0, *course.cuts, len(rows)]
    parts = [fold(spec, table(spec, rows[a:b]), by_hash(8)) for a, b in pairwise(edges)]
    parts = [*reversed(parts[course.early :]), merge(spec, parts[: course.early])]
    return merge(spec, parts)


@given(st.data())
def test_the_sample_of_a_window_is_that_of_the_twin_for_any_run(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    course = data.draw(courses(len(rows)))
    held = pieces(spec, rows, course)
    at_once = fold(spec, table(spec, rows), by_hash(8))
    assert contents(held) == contents(at_once)
    closed = close_partly(spec, held, MIN_US, MAX_US)
    expected = plain(spec, rows)
    states = states_of(spec, closed)
    sampled = rows_of(states)
    ends = closed.column("window_end").cast(pa.int64()).to_pylist()
    keys = [closed.column(name).to_pylist() for name, _ in spec.keys]
    places = list(zip(ends, *keys, strict=True))
    assert len(places) == len(expected)
    values = list(zip(*(c.to_pylist() for c in sampled.columns), strict=True))
    values = values or [()] * len(sampled.priority)
    for i, place in enumerate(places):
        own = np.flatnonzero(sampled.groups.codes == i)
        tuples, chosen = expected[place]
        assert states[0][i].as_py() == tuples
        assert sampled.priority[own].tolist() == [word for word, _ in chosen]
        assert repr([values[j] for j in own]) == repr([value for _, value in chosen])
        assert sampled.ranks[own].tolist() == list(range(len(own)))
    assert sampled.sizes.sum() == len(sampled.priority)
    results, _ = finished(spec, closed)
    assert results["s"].to_pylist() == states[0].to_pylist()


@given(st.data())
def test_the_number_of_tuples_is_what_a_user_would_see(data: st.DataObject) -> None:
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    output = run(spec, rows, data.draw(courses(len(rows))))
    total = sum(sum(part["s"].to_pylist()) for part in output)
    assert total == sum(tuples for tuples, _ in plain(spec, rows).values())


def fold_of(family: Sampled, codes: list[int], n: int, *columns: pa.Array) -> list[pa.Array]:
    seq = np.arange(len(codes))
    order = [pa.array(seq * 0), pa.array(seq * 0), pa.array(seq)]
    return family.fold(Groups(np.array(codes, np.int64), n), [*columns, *order])


def test_ordinary_functions_run_over_the_rows_of_a_sample() -> None:
    chance = np.random.default_rng(3)
    x = pa.array(chance.normal(50, 5, 30_000)), pa.array(["a", None, "b"] * 10_000)
    family = Sampled((pa.float64(), pa.string()), Sampling(seed=1, k=500))
    states = lowest_rows(fold_of(family, [0, 1, 3] * 10_000, 5, *x), 500)
    rows = rows_of(states)
    assert rows.sizes.tolist() == [500, 500, 0, 500, 0]
    mean = Function("m", "mean", ("x",), (pa.float64(),)).family
    found = mean.finish(mean.fold(rows.groups, rows.columns[:1])).to_pylist()
    assert [value and round(value) for value in found] == [50, 50, None, 50, None]
    count = Function("n", "count", ("y",), (pa.string(),)).family
    seen = count.finish(count.fold(rows.groups, rows.columns[1:])).to_pylist()
    assert seen == [500, 0, 0, 500, 0]


def test_tuples_of_which_all_arguments_are_null_take_no_place() -> None:
    """A value in a thousand: all of them are there, and their number is what the sample is of."""
    values = [i if i % 1000 == 0 else None for i in range(60_000)]
    for skips, size, kept in ((True, 60, 60), (False, 60_000, None)):
        family = Sampled((pa.int64(),), Sampling(1, 100, skips))
        states = fold_of(family, [0] * 60_000, 1, pa.array(values))
        assert states[0].to_pylist() == [size]
        (sampled,) = rows_of(states).columns
        assert kept is None or sorted(sampled.to_pylist()) == values[::1000]
        assert kept is not None or len(sampled) >= 100
    both = Sampled((pa.int64(), pa.int64()), Sampling(1, 100))
    one = fold_of(both, [0] * 3, 1, pa.array([1, None, None]), pa.array([None, 2, None]))
    assert one[0].to_pylist() == [2]


def test_the_lowest_rows_of_samples_are_those_of_any_larger_sample() -> None:
    values = pa.array([f"{i}" for i in range(300)])
    codes = [i % 3 for i in range(300)]
    large, small = (
        fold_of(Sampled((pa.string(),), Sampling(9, k)), codes, 4, values) for k in (50, 20)
    )
    assert lowest_rows(large, 20) == lowest_rows(small, 20)
    assert rows_of(lowest_rows(large, 20)).sizes.tolist() == [20, 20, 20, 0]
    assert rows_of(lowest_rows(large, 999)).sizes.tolist() == rows_of(large).sizes.tolist()


def test_states_may_be_slices_of_longer_columns() -> None:
    family = Sampled((pa.int64(),), Sampling(9, 4))
    states = fold_of(family, [0, 1, 2, 0, 1, 2], 3, pa.array([1, 2, 3, 4, None, 6]))
    late = [column.slice(1) for column in states]
    assert rows_of(late).groups.codes.tolist() == [0, 1, 1]
    one = Groups(np.zeros(2, np.int64), 1)
    assert sorted(family.merge(one, late)[2][0].as_py()) == [2, 3, 6]


def test_no_tuples_make_no_states() -> None:
    family = Sampled((pa.decimal128(9, 2),), Sampling(9, 4))
    states = fold_of(family, [], 0, pa.array([], pa.decimal128(9, 2)))
    assert [column.type for column in states] == [type_ for _, type_ in family.state]
    assert rows_of(states).groups.n == 0
    assert [len(column) for column in family.merge(Groups(np.empty(0, np.int64), 0), states)] == [
        0
    ] * 3
    assert [len(column) for column in lowest_rows(states, 3)] == [0] * 3


@pytest.mark.parametrize("parameters", [(), (1,), (Sampling(1, 2), Sampling(1, 2))])
def test_it_cannot_be_made_without_its_sampling(parameters: tuple[Any, ...]) -> None:
    with pytest.raises(QueryError, match="a sample needs its Sampling"):
        Function("s", "sampled", ("x",), (pa.int64(),), parameters)


def test_a_sampling_must_make_sense() -> None:
    with pytest.raises(QueryError, match="k >= 1 is required"):
        Sampling(1, 0)
