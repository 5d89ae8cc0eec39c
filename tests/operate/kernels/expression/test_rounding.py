from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.operate.kernels.expression.failure import RowFailure
from tidegate.operate.kernels.expression.rounding import OPS

EXACT = Context(prec=900)
NEAR_TIES = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)


@given(st.floats() | NEAR_TIES, st.integers(-30, 30) | st.integers(-340, 340))
@example(2.675, 2)
@example(1.005, 2)
@example(0.5, 0)
@example(-0.2, 0)
@example(1e17 + 16, -2)
@example(123456789012.345, 2)
@example(4503599627370497.5, 0)
@example(5e-324, 30)
def test_doubles_round_by_the_digits_they_print_as(number: float, digits: int) -> None:
    result = OPS["round"](pa.float64(), pa.array([number]), pa.scalar(digits))[0].as_py()
    if not math.isfinite(number):
        assert result == number or math.isnan(result)
        return
    step = Decimal(1).scaleb(-digits)
    wanted = float(Decimal(repr(number)).quantize(step, ROUND_HALF_UP, EXACT))
    assert result == wanted


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 12))
def test_integers_round_half_away_from_zero(number: int, digits: int) -> None:
    step = 10**digits
    wanted = (abs(number) + step // 2) // step * step * (1 if number >= 0 else -1)
    values = pa.array([number], pa.int32())
    if not -(2**31) <= wanted < 2**31:
        with pytest.raises(RowFailure):
            OPS["round"](pa.int32(), values, pa.scalar(-digits))
    else:
        assert OPS["round"](pa.int32(), values, pa.scalar(-digits)).to_pylist() == [wanted]


def test_the_ends_of_int64_round() -> None:
    values = pa.array([2**63 - 1, -(2**63)])
    with pytest.raises(RowFailure):
        OPS["round"](pa.int64(), values, pa.scalar(-1))
    assert OPS["round"](pa.int64(), values, pa.scalar(0)).equals(values)
    near = pa.array([-9223372036854774500, 9223372036854774499])
    wanted = [-9223372036854775000, 9223372036854774000]
    assert OPS["round"](pa.int64(), near, pa.scalar(-3)).to_pylist() == wanted


def test_floor_and_ceil_of_doubles_are_int64() -> None:
    values = pa.array([-0.5, 2.5, math.nan, None])
    assert OPS["floor"](pa.int64(), values).to_pylist() == [-1, 2, 0, None]
    assert OPS["ceil"](pa.int64(), values).to_pylist() == [0, 3, 0, None]
    with pytest.raises(RowFailure, match="inf"):
        OPS["ceil"](pa.int64(), pa.array([math.inf]))


def test_floor_of_decimals_keeps_a_digit_for_the_carry() -> None:
    values = pa.array([Decimal("9.99"), Decimal("-9.01"), None], pa.decimal128(3, 2))
    assert OPS["ceil"](pa.decimal128(2, 0), values).to_pylist() == [10, -9, None]
    assert OPS["floor"](pa.decimal128(2, 0), values).to_pylist() == [9, -10, None]


@given(st.decimals(-9999, 9999, places=4), st.integers(-6, 6))
def test_decimals_round_half_away_from_zero(number: Decimal, digits: int) -> None:
    values = pa.array([number, None], pa.decimal128(8, 4))
    type_ = pa.decimal128(20, min(4, max(digits, 0)))
    wanted = number.quantize(Decimal(1).scaleb(-min(digits, 4)), ROUND_HALF_UP)
    assert OPS["round"](type_, values, pa.scalar(digits)).to_pylist() == [wanted, None]


@pytest.mark.parametrize("digits", [1, 10, 37, 38])
def test_floor_and_ceil_of_whole_decimals_are_themselves(digits: int) -> None:
    type_ = pa.decimal128(digits, 0)
    values = pa.array([Decimal(10**digits - 1), Decimal(-5), None], type_)
    assert OPS["floor"](type_, values).equals(values)
    assert OPS["ceil"](type_, values).equals(values)
