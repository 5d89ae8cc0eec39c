"""Exact sums and quotients against Python's integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.sum.total import (
    add_limbs,
    divide_limbs,
    limb_floats,
    limb_integers,
    slide_integers,
    sum_exact,
    sum_integers,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


def value(limbs: list[Ints], i: int = 0) -> int:
    return sum(int(limb[i]) << (32 * place) for place, limb in enumerate(limbs))


def groups(size: int) -> Groups:
    return Groups(np.arange(size) % 2, 2)


@given(st.lists(st.one_of(INT64, st.integers(-9, 9)), max_size=40))
def test_integers_add_up_exactly(values: list[int]) -> None:
    limbs = sum_exact(groups(len(values)), pa.array(values, pa.int64()))
    for i in range(2):
        assert value(limbs, i) == sum(values[i::2])
        assert 0 <= limbs[0][i] < 2**32
    doubles = limb_floats(limbs)
    assert doubles.tolist() == [float(sum(values[i::2])) for i in range(2)]


@given(st.lists(st.integers(-(2**40), 2**40), max_size=30))
def test_sums_of_wide_limbs_are_exact(values: list[int]) -> None:
    sums = sum_integers(groups(len(values)), np.array(values, np.int64))
    assert sums.tolist() == [sum(values[i::2]) for i in range(2)]


@given(st.lists(INT64, max_size=20), st.data())
def test_integers_of_a_window_are_a_difference_of_sums(
    values: list[int], data: st.DataObject
) -> None:
    """Modulo 2**64, however large the sums before the window are."""
    places = st.integers(0, len(values))
    a, b = sorted([data.draw(places), data.draw(places)])
    (found,) = slide_integers(np.array(values, np.int64), np.array([a]), np.array([b])).tolist()
    assert (found - sum(values[a:b])) % 2**64 == 0


def test_rows_beyond_the_exact_range_of_a_double_are_added_in_steps() -> None:
    codes = np.zeros(2**21, np.int64)
    numbers = np.full(2**21, 2**33 - 1)
    assert sum_integers(Groups(codes, 1), numbers).tolist() == [(2**33 - 1) * 2**21]


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=9), st.integers(0, 4))
def test_decimals_add_up_and_divide_half_away_from_zero(values: list[int], digits: int) -> None:
    words = b"".join(v.to_bytes(16, "little", signed=True) for v in values)
    column = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), [None, pa.py_buffer(words)])
    one = Groups(np.zeros(len(values), np.int64), 1)
    limbs = sum_exact(one, column)
    assert value(limbs) == sum(values)
    tail = Groups(np.zeros(len(values) - 1, np.int64), 1)
    assert value(sum_exact(tail, column.slice(1))) == sum(values[1:])
    assert value(add_limbs(Groups(np.zeros(2, np.int64), 1), [np.tile(x, 2) for x in limbs])) == (
        2 * sum(values)
    )
    exact = Fraction(sum(values) * 10**digits, len(values))
    rounded = int(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    quotient = divide_limbs(limbs, np.array([len(values)]), digits)
    if abs(rounded) < 2**127:
        assert value(quotient) == rounded
    else:
        assert not -(2**31) <= quotient[3][0] < 2**31


def test_a_quotient_by_a_large_count_and_by_none() -> None:
    limbs = [np.array([7, 0]), np.array([0, 0]), np.array([9, 0]), np.array([-4, 0])]
    counts = np.array([2**45 + 3, 0])
    total = value(limbs)
    quotient = divide_limbs(limbs, counts, 4)
    expected = -int(Fraction(-total * 10**4, 2**45 + 3) + Fraction(1, 2))
    assert (value(quotient, 0), value(quotient, 1)) == (expected, 0)


def test_the_bounds_of_a_bigint() -> None:
    low, high = np.array([2**32 - 1, 0]), np.array([2**31 - 1, -(2**31)])
    assert limb_integers([low, high], "SUM").tolist() == [2**63 - 1, -(2**63)]
