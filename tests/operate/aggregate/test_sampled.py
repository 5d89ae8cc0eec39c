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
from tidegate.operate.aggregate.pane import (
    AggregateSpec,
    Function,
    close_partly,
    finished,
    fold,
    merge,
)
from tidegate.operate.aggregate.sampled import Sampled, Sampling, rows_of, trimmed
from tidegate.operate.kernels.group import Groups


@st.composite
def specs(draw: st.DrawFn) -> AggregateSpec:
    names = tuple(draw(st.lists(st.sampled_from(sorted(POOLS)), max_size=4, unique=True)))
    types = tuple(POOLS[name][0] for name in names)
    k, rate = draw(st.sampled_from([0, 1, 3, 100])), draw(st.sampled_from([0.0, 0.3, 1.0]))
    sampling = Sampling(draw(st.integers(0, 2**64 - 1)), k, rate)
    keys = (("k_int", POOLS["int"][0]),) if draw(st.booleans()) else ()
    slide = draw(st.integers(1, 12))
    length = draw(st.sampled_from([slide, 3 * slide, 30 * slide]))
    return AggregateSpec(
        length, slide, keys, (Function("s", "sampled", names, types, (sampling,)),)
    )


def plain(spec: AggregateSpec, rows: list[dict[str, Any]]) -> dict[Any, tuple[int, list[Any]]]:
    """How many tuples and the sample of each window and group, tuple by tuple."""
    (function,) = spec.functions
    (rule,) = function.parameters
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for row in rows:
        word = twin.priority(rule.seed, row["src"], row["seq"])
        k = row["ts"] // spec.slide_us
        while row["ts"] < k * spec.slide_us + spec.range_us:
            place = (k * spec.slide_us + spec.range_us, *(row[name] for name, _ in spec.keys))
            names = zip(function.arguments, function.types, strict=True)
            values = tuple(pa.scalar(row[name], type_).as_py() for name, type_ in names)
            groups.setdefault(place, []).append((word, values))
            k -= 1
    return {p: (len(g), twin.sample(g, rule.k, rule.rate)) for p, g in groups.items()}


def states_of(spec: AggregateSpec, closed: pa.Table) -> list[pa.Array]:
    return [closed.column(name).combine_chunks() for name, _ in spec.functions[0].state]


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
    assert repr(held.to_pylist()) == repr(at_once.to_pylist())
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
    states = fold_of(family, [0, 1, 3] * 10_000, 5, *x)
    rows = rows_of(states)
    assert rows.sizes.tolist() == [500, 500, 0, 500, 0]
    mean = Function("m", "mean", ("x",), (pa.float64(),)).family
    found = mean.finish(mean.fold(rows.groups, rows.columns[:1])).to_pylist()
    assert [value and round(value) for value in found] == [50, 50, None, 50, None]
    count = Function("n", "count", ("y",), (pa.string(),)).family
    assert count.finish(count.fold(rows.groups, rows.columns[1:])).to_pylist() == [
        500,
        0,
        0,
        500,
        0,
    ]


def test_a_trimmed_sample_is_the_sample_of_that_size() -> None:
    values = pa.array([None if i % 7 == 0 else f"{i}" for i in range(300)])
    codes = [i % 3 for i in range(300)]
    large = fold_of(Sampled((pa.string(),), Sampling(9, 50)), codes, 4, values)
    small = fold_of(Sampled((pa.string(),), Sampling(9, 20)), codes, 4, values)
    assert trimmed(large, np.full(4, 20)) == small
    assert trimmed(large, np.full(4, 90)) == large
    sizes = rows_of(trimmed(large, np.array([0, 10, 60, -1]))).sizes
    assert sizes.tolist() == [0, 10, 50, 0]


def test_states_may_be_slices_of_longer_columns() -> None:
    family = Sampled((pa.int64(),), Sampling(9, 4))
    states = fold_of(family, [0, 1, 2, 0, 1, 2], 3, pa.array([1, 2, 3, 4, None, 6]))
    late = [column.slice(1) for column in states]
    assert rows_of(late).groups.codes.tolist() == [0, 0, 1, 1]
    one = Groups(np.zeros(2, np.int64), 1)
    assert sorted(family.merge(one, late)[2][0].as_py(), key=str) == [2, 3, 6, None]


def test_no_tuples_make_no_states() -> None:
    family = Sampled((pa.decimal128(9, 2),), Sampling(9, 4))
    states = fold_of(family, [], 0, pa.array([], pa.decimal128(9, 2)))
    assert [column.type for column in states] == [type_ for _, type_ in family.state]
    assert rows_of(states).groups.n == 0
    assert [len(column) for column in family.merge(Groups(np.empty(0, np.int64), 0), states)] == [
        0
    ] * 3
    assert [len(column) for column in trimmed(states, np.empty(0, np.int64))] == [0] * 3


@pytest.mark.parametrize("parameters", [(), (1,), (Sampling(1, 2), Sampling(1, 2))])
def test_it_cannot_be_made_without_its_sampling(parameters: tuple[Any, ...]) -> None:
    with pytest.raises(QueryError, match="a sample needs its Sampling"):
        Function("s", "sampled", ("x",), (pa.int64(),), parameters)


@pytest.mark.parametrize(("k", "rate"), [(-1, 0.5), (1, -0.1), (1, 1.01)])
def test_a_sampling_must_make_sense(k: int, rate: float) -> None:
    with pytest.raises(QueryError, match="k >= 0 and a rate between 0 and 1"):
        Sampling(1, k, rate)
