"""Exact sums against fractions, in any cut and any tree of merges."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.function import float_sum, nearest
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.sum import exact_sum
from tidegate.operate.kernels.sum.exact_sum import (
    KEPT_SUM,
    add_sums,
    correlations,
    covariances,
    round_sums,
    slide_sums,
    sum_products,
    sum_values,
)

TINY, HUGE, INF, NAN = 5e-324, 1.7976931348623157e308, math.inf, math.nan
EDGES = (0.0, -0.0, TINY, -TINY, 2.2250738585072014e-308, HUGE, -HUGE, 1e16, -1e16, 0.1, 1.0)
FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(EDGES),
    st.integers(0, 100_000).map(lambda cents: cents / 100),
)
ANY = st.one_of(FINITE, st.sampled_from([INF, -INF, NAN]))


def one(size: int) -> Groups:
    return Groups(np.zeros(size, np.int64), 1)


def kept(values: list[float]) -> pa.Array:
    return sum_values(one(len(values)), np.array(values))


def bits(value: float) -> bytes:
    return struct.pack("d", NAN if math.isnan(value) else value)


@given(st.lists(ANY, max_size=20))
def test_a_sum_is_the_double_nearest_to_the_exact_one(values: list[float]) -> None:
    (mine,) = round_sums(kept(values)).tolist()
    assert bits(mine) == bits(float_sum(values))
    if all(map(math.isfinite, values)) and sum(map(abs, values)) < HUGE:
        assert mine == math.fsum(values)


@given(st.lists(FINITE, max_size=12), st.data())
def test_halves_go_to_even_and_a_bit_decides(values: list[float], data: st.DataObject) -> None:
    """The same numbers beside one that is exactly half a unit of their sum, and a little."""
    total = nearest(sum(map(Fraction, values), Fraction(0)))
    if math.isfinite(total) and abs(total) > 1e-290:
        beside = Fraction(math.ulp(total)) / 2 * data.draw(st.sampled_from([1, -1]))
        values = [total, float(beside), data.draw(st.sampled_from([0.0, TINY, -TINY]))]
    assert round_sums(kept(values)).tolist() == [float_sum(values)]


@given(st.lists(st.tuples(st.integers(0, 3), ANY, ANY), max_size=25), st.data())
def test_the_bytes_depend_on_the_numbers_alone(
    rows: list[tuple[int, float, float]], data: st.DataObject
) -> None:
    """Any order, any cut, any tree of merges, sums beside others or alone, many turns or one."""

    def fold(rows: list[tuple[int, float, float]]) -> list[pa.Array]:
        groups = Groups(np.array([g for g, *_ in rows], np.int64), 4)
        x, y = (np.array([row[i] for row in rows], np.float64) for i in (1, 2))
        return [sum_values(groups, x), sum_products(groups, x, y)]

    whole = fold(rows)
    parts = [fold([row]) for row in data.draw(st.permutations(rows))] or [fold([])]
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        many = data.draw(st.integers(2, 4))
        groups = Groups(np.tile(np.arange(4), len(parts[at : at + many])), 4)
        columns = [pa.concat_arrays(column) for column in zip(*parts[at : at + many], strict=True)]
        parts[at : at + many] = [[add_sums(groups, column) for column in columns]]
    for mine, wanted in zip(parts[0], whole, strict=True):
        assert mine.to_pylist() == wanted.to_pylist()
    for group in range(4):
        alone = fold([row for row in rows if row[0] == group])
        assert [c[group].as_py() for c in alone] == [c[group].as_py() for c in whole]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sum, "_LIMBS", data.draw(st.integers(1, 40)))
        assert [c.to_pylist() for c in fold(rows)] == [c.to_pylist() for c in whole]


@given(st.lists(ANY, min_size=1, max_size=20), st.data())
def test_what_leaves_a_window_leaves_nothing_behind(
    values: list[float], data: st.DataObject
) -> None:
    size = len(values)
    sums = sum_values(Groups(np.arange(size), size), np.array(values))
    places = st.lists(st.integers(0, size - 1), min_size=1, max_size=12).map(sorted)
    first = data.draw(places)
    lengths = data.draw(st.lists(st.integers(1, size), min_size=len(first), max_size=len(first)))
    ends = [min(a + b, size) for a, b in zip(first, lengths, strict=True)]
    last = np.maximum.accumulate(ends)
    slid = slide_sums(sums, np.array(first), last)
    wanted = [kept(values[a:b])[0].as_py() for a, b in zip(first, last, strict=True)]
    assert slid.to_pylist() == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sum, "_LIMBS", 5)
        assert slide_sums(sums, np.array(first), last).to_pylist() == wanted
    assert len(slide_sums(sums, np.zeros(0, np.int64), np.zeros(0, np.int64))) == 0


@given(st.lists(st.tuples(FINITE, FINITE), max_size=12))
def test_second_moments_are_those_of_fractions(pairs: list[tuple[float, float]]) -> None:
    n = len(pairs)
    x, y = (np.array([pair[i] for pair in pairs], np.float64) for i in (0, 1))
    counts = np.array([n])
    sums = [kept(x.tolist()), kept(y.tolist())]
    sums += [sum_products(one(n), *both) for both in ((x, y), (x, x), (y, y))]
    for less in (0, 1):
        for a, b, ab, columns in ((0, 1, 2, (x, y)), (0, 0, 3, (x, x)), (1, 1, 4, (y, y))):
            mine = covariances(counts, less, sums[a], sums[b], sums[ab]).tolist()
            exact = spread(*columns) / n / (n - less) if n > less else Fraction(0)
            assert [bits(v) for v in mine] == [bits(nearest(exact))]
    (mine,) = correlations(counts, *sums).tolist()
    xy, xx, yy = spread(x, y), spread(x, x), spread(y, y)
    if not xx or not yy:
        assert mine == INF
    else:
        assert abs(mine) <= 1
        square = xy * xy / (xx * yy)
        assert abs(Fraction(mine) ** 2 - square) <= square / 10**15 + Fraction(TINY)
        assert mine == 0 or (mine > 0) == (xy > 0)


def spread(x: Any, y: Any) -> Fraction:
    """n * sum(xy) - sum(x) * sum(y)."""
    xs, ys = ([Fraction(v) for v in column.tolist()] for column in (x, y))
    products = sum((a * b for a, b in zip(xs, ys, strict=True)), Fraction(0))
    return len(xs) * products - sum(xs, Fraction(0)) * sum(ys, Fraction(0))


@pytest.mark.parametrize("wild", [INF, -INF, NAN])
def test_moments_with_a_number_that_is_not_finite_are_nan(wild: float) -> None:
    x, y = np.array([1.0, wild, 3.0]), np.array([1.0, 2.0, 4.0])
    counts, sums = np.array([3]), [kept(x.tolist()), kept(y.tolist())]
    sums += [sum_products(one(3), *both) for both in ((x, y), (x, x), (y, y))]
    assert np.isnan(covariances(counts, 1, sums[0], sums[1], sums[2])).all()
    assert np.isnan(covariances(counts, 0, sums[1], sums[0], sums[2])).all()
    assert np.isnan(correlations(counts, *sums)).all()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], ()),
        ([0.0, -0.0, 1.5, -1.5], ()),
        ([1.0], (0, 1)),
        ([-1.0], (0, -1)),
        ([2.0**31], (0, -(2**31), 0)),
        ([-(2.0**31)], (0, -(2**31))),
        ([2.0**32, 0.25], (-1 * 8, 2**30, 0, 1)),
        ([-(2.0**64)], (2 * 8, -1)),
        ([NAN, 1.0], (1, 1)),
        ([INF, -INF, 2.0**32], (1 * 8 + 6, 1)),
        ([-INF], (4,)),
        ([TINY], (-34 * 8, 2**14)),
    ],
)
def test_the_words_of_a_kept_sum(values: list[float], words: tuple[int, ...]) -> None:
    assert kept(values).to_pylist() == [struct.pack(f"<{len(words)}i", *words)]


def test_a_limb_has_room_for_many_rows() -> None:
    rows = 2**22
    sums = sum_products(one(rows), np.full(rows, HUGE), np.full(rows, -HUGE))
    root = int(HUGE)
    packed = sums[0].as_py()
    head = struct.unpack("<i", packed[:4])[0]
    total = int.from_bytes(packed[4:], "little", signed=True) << (32 * (head >> 3))
    assert total == -rows * root * root


def test_columns_may_be_slices_and_empty() -> None:
    groups = Groups(np.arange(5), 5)
    sums = sum_values(groups, np.array([1.5, 0.0, -2.25, 1e300, NAN]))
    sums.validate(full=True)
    assert sums.type == KEPT_SUM
    part = sums.slice(1, 3)
    assert round_sums(part).tolist() == [0.0, -2.25, 1e300]
    assert add_sums(Groups(np.arange(3), 3), part).equals(part)
    nothing = add_sums(Groups(np.zeros(0, np.int64), 0), sums.slice(5))
    assert (len(nothing), len(round_sums(nothing))) == (0, 0)
    assert sum_values(Groups(np.zeros(0, np.int64), 3), np.zeros(0)).to_pylist() == [b""] * 3


def test_a_column_may_lie_at_any_address() -> None:
    sums = sum_values(Groups(np.arange(3), 3), np.array([0.1, -3.0, 1e300]))
    odd = [b if b is None else pa.py_buffer(b"x" + b.to_pybytes()).slice(1) for b in sums.buffers()]
    moved = pa.Array.from_buffers(KEPT_SUM, 3, odd)
    assert round_sums(moved).tolist() == [0.1, -3.0, 1e300]
    assert add_sums(Groups(np.zeros(3, np.int64), 1), moved).to_pylist() == [
        kept([0.1, -3.0, 1e300])[0].as_py()
    ]


def test_a_perfect_correlation_is_one() -> None:
    x = np.array([0.1, 0.2, 0.7, 1e9])
    for y, wanted in ((x, 1.0), (-4 * x, -1.0)):
        sums = [kept(x.tolist()), kept(y.tolist())]
        sums += [sum_products(one(4), *both) for both in ((x, y), (x, x), (y, y))]
        assert correlations(np.array([4]), *sums).tolist() == [wanted]


@pytest.mark.parametrize("shift", [0, 29, 30, 31, 32])
@pytest.mark.parametrize("rows", [5_000, 200_000])
def test_a_sum_may_need_a_digit_more_than_its_numbers(shift: int, rows: int) -> None:
    """All bits of the numbers are set, and those of so many carry beyond their last digit."""
    one = Groups(np.zeros(rows, np.int64), 1)
    number = (2**53 - 1) << shift
    for sign in (1, -1):
        values = np.full(rows, float(sign * number))
        assert round_sums(sum_values(one, values)).tolist() == [float(sign * number * rows)]
        squares = sum_products(one, values, np.abs(values))
        assert round_sums(squares).tolist() == [float(sign * number * number * rows)]
        parts = pa.concat_arrays([sum_values(one, values)] * 70)
        whole = add_sums(Groups(np.zeros(70, np.int64), 1), parts)
        assert round_sums(whole).tolist() == [float(sign * number * rows * 70)]
