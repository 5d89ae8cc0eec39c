from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.expression.tree import Call, Column
from tidegate.operate.kernels.expression import decimal
from tidegate.operate.kernels.expression.decimal import from_unscaled, unscaled
from tidegate.operate.kernels.expression.failure import RowFailure
from tidegate.query.types.coercion import UnknownKernel
from tidegate.query.types.operator import arithmetic

EXACT = Context(prec=200)
SHAPES = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))


@st.composite
def operands(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    """Two columns of decimals, each of its own precision and scale."""
    columns = []
    rows = draw(st.integers(1, 4))
    for _ in range(2):
        precision, scale = draw(SHAPES)
        top = 10**precision - 1
        whole = st.integers(-top, top) | st.integers(-5, 5) | st.sampled_from([top, -top])
        numbers = [max(-top, min(top, draw(whole))) for _ in range(rows)]
        values = [Decimal(n).scaleb(-scale, EXACT) for n in numbers]
        nulls = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
        values = [None if null else value for null, value in zip(nulls, values, strict=True)]
        columns.append(pa.array(values, pa.decimal128(precision, scale)))
    return columns[0], columns[1]


def exact(op: str, a: Decimal, b: Decimal) -> Decimal:
    if op == "add":
        return EXACT.add(a, b)
    if op == "subtract":
        return EXACT.subtract(a, b)
    if op == "multiply":
        return EXACT.multiply(a, b)
    if op == "divide":
        return EXACT.divide(a, b)
    return EXACT.subtract(a, EXACT.multiply(b, EXACT.divide(a, b).quantize(1, ROUND_DOWN, EXACT)))


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "remainder"])
@given(columns=operands())
def test_results_are_the_exact_ones_rounded_half_up(
    op: str, columns: tuple[pa.Array, pa.Array]
) -> None:
    left, right = columns
    try:
        call = arithmetic(
            op, Column("a", left.type), Column("b", right.type), "test", (False, False)
        )
    except UnknownKernel:
        return
    assert isinstance(call, Call)
    step = Decimal(1).scaleb(-call.type.scale)
    limit = Decimal(10) ** (call.type.precision - call.type.scale)
    wanted: list[Decimal | None] = []
    fails = False
    for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True):
        if a is None or b is None:
            wanted.append(None)
        elif op in ("divide", "remainder") and not b:
            fails = True
        else:
            wanted.append(exact(op, a, b).quantize(step, ROUND_HALF_UP, EXACT))
            fails |= EXACT.abs(wanted[-1] or 0) >= limit
    kernel = getattr(decimal, op)
    if fails:
        with pytest.raises(RowFailure):
            kernel(call.type, left, right)
    else:
        result = kernel(call.type, left, right)
        assert result.type == call.type
        assert result.to_pylist() == wanted


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_the_integers_behind_decimals_go_in_and_out(numbers: list[int | None]) -> None:
    type_ = pa.decimal128(38, 2)
    values = [None if n is None else Decimal(n).scaleb(-2, EXACT) for n in numbers]
    array = pa.array([None, *values], type_).slice(1)
    integers, valid = unscaled(array)
    assert integers is not None
    kept = array.is_valid().to_numpy(zero_copy_only=False)
    assert valid is None or valid.tolist() == kept.tolist()
    assert from_unscaled(integers, kept, type_).equals(array)


def test_wide_decimals_have_no_narrow_integers() -> None:
    assert unscaled(pa.array([Decimal(2**63)], pa.decimal128(38, 0)))[0] is None


ALL_BITS = [Decimal(2**32 - 1), Decimal(2**64 - 1), Decimal((2**32 - 1) << 32), Decimal(2**33 - 1)]


@pytest.mark.parametrize("scale", range(1, 18))
@pytest.mark.parametrize("part", ["0.0", "0.4", "0.5", "0.999999"])
def test_words_with_all_bits_set_divide_right(scale: int, part: str) -> None:
    """Arrow's own long division is wrong for these."""
    step = Decimal(1).scaleb(-scale)
    values = [EXACT.add(v, Decimal(part)).quantize(step, ROUND_DOWN, EXACT) for v in ALL_BITS]
    values += [-value for value in values]
    array = pa.array(values, pa.decimal128(38, scale))
    rounded = [v.quantize(Decimal(1), ROUND_HALF_UP, EXACT) for v in values]
    assert decimal.cut(array, 0).to_pylist() == [v.quantize(1, ROUND_DOWN, EXACT) for v in values]
    assert decimal.fit(array, pa.decimal128(30, 0))[0].to_pylist() == rounded
    assert decimal.floor(array).to_pylist() == [v.quantize(1, ROUND_FLOOR, EXACT) for v in values]
    assert decimal.ceil(array).to_pylist() == [v.quantize(1, ROUND_CEILING, EXACT) for v in values]
    unit = pa.array([step * 3] * len(values), pa.decimal128(20, scale))
    wanted = [EXACT.remainder(v, step * 3) for v in values]
    assert decimal.remainder(pa.decimal128(38, scale), array, unit).to_pylist() == wanted


@given(st.integers(0, 2**32 - 1), st.integers(10**15, 10**16 - 1))
def test_a_long_divisor_divides_right(low: int, divisor: int) -> None:
    """The quotient Arrow computes, with 17 further digits, has a word with all bits set."""
    wanted = ((2**32 - 1) << 32) + low
    dividend = wanted * divisor // 10**17 + 1
    left = pa.array([Decimal(dividend)], pa.decimal128(20, 0))
    right = pa.array([Decimal(divisor)], pa.decimal128(16, 0))
    result = decimal.divide(pa.decimal128(38, 16), left, right)
    exact = EXACT.divide(Decimal(dividend), Decimal(divisor))
    assert result.to_pylist() == [exact.quantize(Decimal(1).scaleb(-16), ROUND_HALF_UP, EXACT)]
