"""APPROX_COUNT_DISTINCT keeps its promise: its error, its independence of the run, its speed."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import calls
from tests.operate.aggregate.stream import by_hash
from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow

GROUPS = 300


def spec_of(rsd: float | None = None, type_: pa.DataType | None = None) -> AggregateSpec:
    parameters = () if rsd is None else (rsd,)
    function = Function("n", "approx_count_distinct", ("x",), (type_ or pa.int64(),), parameters)
    return AggregateSpec(PaneWindow(60, 20), (("k", pa.int64()),), (function,))


def counts(spec: AggregateSpec, parts: list[pa.Table]) -> pa.Table:
    return close(
        spec, merge(spec, [fold(spec, part, by_hash(8)) for part in parts]), MIN_US, MAX_US
    )


@pytest.mark.whole
@pytest.mark.parametrize(
    ("rsd", "size"), [(0.39, 2000), (0.05, 100), (0.05, 1200), (0.05, 3000), (0.02, 10_000)]
)
def test_the_relative_standard_deviation_is_as_promised(rsd: float, size: int) -> None:
    """Over 300 groups of other values; the bound allows for the deviation of a sample of these."""
    chance = np.random.default_rng(size)
    for _ in range(3):
        keys = np.repeat(np.arange(GROUPS), size)
        values = chance.integers(0, 2**62, GROUPS * size)
        rows = pa.table({"ts": np.zeros(len(keys), np.int64), "k": keys, "x": values})
        found = counts(spec_of(rsd), [rows])
        errors = found["n"].to_numpy() / size - 1
        assert len(errors) == 3 * GROUPS
        deviation = math.sqrt(np.mean(errors**2))
        assert 0 < deviation <= rsd * (1 + 3 / math.sqrt(2 * GROUPS))
        assert abs(np.mean(errors)) <= rsd / 4


def test_few_values_are_counted_exactly() -> None:
    sizes = np.arange(49)
    keys = np.repeat(sizes, sizes)
    rows = pa.table({"ts": np.zeros(len(keys), np.int64), "k": keys, "x": np.arange(len(keys))})
    found = counts(spec_of(), [rows, rows])
    assert set(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True)) == {
        (k, k) for k in range(1, 49)
    }


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 4000),
    keys=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 4000), max_size=6),
    rsd=st.sampled_from([0.05, 0.39, 0.01]),
)
def test_the_bits_do_not_depend_on_order_cut_or_merging(
    seed: int, size: int, keys: int, cuts: list[int], rsd: float
) -> None:
    """Any permutation in any batches, merged in any order, gives the same output."""
    chance = np.random.default_rng(seed)
    columns = {
        "ts": chance.integers(0, 200, size),
        "k": chance.integers(0, keys, size),
        "x": chance.integers(0, 3 * size, size),
    }
    rows, spec = pa.table(columns), spec_of(rsd)
    whole = counts(spec, [rows])
    moved = rows.take(pa.array(chance.permutation(size)))
    edges = [0, *sorted(min(c, size) for c in cuts), size]
    parts = [moved.slice(a, b - a) for a, b in pairwise(edges)]
    chance.shuffle(parts)
    assert counts(spec, parts).equals(whole)


@pytest.mark.parametrize(
    ("type_", "values", "count"),
    [
        (pa.float64(), [0.0, -0.0, math.nan, -math.nan, 1.5, None], 3),
        (pa.float32(), [0.1, 0.1, None, math.nan], 2),
        (pa.string(), ["", "a", "a", "aé", None], 3),
        (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\x00"], 3),
        (pa.bool_(), [True, False, None, True], 2),
        (pa.decimal128(12, 3), [1, 2, 1, None], 2),
        (pa.string(), [None, None], 0),
        (pa.date32(), [None], 0),
    ],
)
def test_values_of_every_type_are_equal_as_in_count_distinct(
    type_: pa.DataType, values: list[Any], count: int
) -> None:
    zeros = np.zeros(len(values), np.int64)
    rows = pa.table({"ts": zeros, "k": zeros, "x": pa.array(values, type_)})
    exact = Function("n", "distinct", ("x",), (type_,))
    for spec in (
        spec_of(type_=type_),
        AggregateSpec(PaneWindow(60, 20), (("k", pa.int64()),), (exact,)),
    ):
        assert set(counts(spec, [rows])["n"].to_pylist()) == {count}


def test_a_million_values_cost_arrays_and_not_python() -> None:
    size = 1_000_000
    chance = np.random.default_rng(1)
    columns = {"ts": np.zeros(size, np.int64), "k": chance.integers(0, 1000, size)}
    rows = pa.table({**columns, "x": chance.integers(0, 2**62, size)})
    assert counts(spec_of(), [rows]).num_rows == 3000
    assert calls(lambda: counts(spec_of(), [rows])) < size // 10
