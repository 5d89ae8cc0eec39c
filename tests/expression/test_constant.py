from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate.errors import TaskError
from tidegate.expression.constant import computed, is_convertible
from tidegate.expression.digits import bounded
from tidegate.expression.kind import CONVERSIONS, kind
from tidegate.expression.tree import Call, Column, Literal
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.schema import TIME

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
ONE_ROW = pa.table({"row": pa.array([0])})
TARGETS = [
    pa.int8(),
    INT,
    LONG,
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 10),
    pa.decimal128(5, 0),
    pa.bool_(),
    TEXT,
    TIME,
    pa.date32(),
]
WORDS = st.sampled_from(
    "1| -12 |+5|1.5|-0.0|1e3|0x1p3|NaN|inf|2d|true| T |no||2020-01-02|2020-2-30|2020|9999999999|"
    "2020-01-02 03:04:05.6|2020-01-02T03Z".split("|")
)
DECIMALS = st.decimals(-(10**12), 10**12, places=3) | st.sampled_from(
    [Decimal("-0.0"), Decimal("0.0050"), Decimal("-0.5"), Decimal(10) ** 20]
)


def _decimal(number: Decimal) -> Literal:
    _, digits, exponent = number.as_tuple()
    scale = max(0, -int(exponent))
    return Literal(number, bounded(max(len(digits) + max(0, int(exponent)), scale), scale))


LITERALS = st.one_of(
    st.sampled_from([Literal(None, INT), Literal(None, TEXT)]),
    st.integers(-(2**31), 2**31 - 1).map(lambda n: Literal(n, INT)),
    st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 3 * 10**9]).map(lambda n: Literal(n, LONG)),
    st.booleans().map(lambda b: Literal(b, pa.bool_())),
    st.floats(-1e20, 1e20).map(lambda x: Literal(x, pa.float64())),
    st.sampled_from([float("inf"), float("nan"), -0.0, 2.0**63, 2.0**31]).map(
        lambda x: Literal(x, pa.float64())
    ),
    DECIMALS.map(_decimal),
    WORDS.map(lambda text: Literal(text, TEXT)),
    st.dates(date(1, 1, 1)).map(lambda day: Literal(day, pa.date32())),
    st.datetimes(datetime(1, 1, 1)).map(lambda t: Literal(t.replace(tzinfo=UTC), TIME)),
)


def kernel(call: Call) -> object:
    """What the kernels give; fails where there is no value, or none that Python has."""
    return evaluate(call, ONE_ROW)[0].as_py()


@given(LITERALS, st.sampled_from(TARGETS))
def test_a_conversion_is_that_of_the_cast_kernel(literal: Literal, type_: pa.DataType) -> None:
    assume((kind(literal.type), kind(type_)) in CONVERSIONS)
    call = Call("cast", (literal,), type_)
    found = computed(call)
    if found is not None:
        assert found.type == type_
        assert repr(found.value) == repr(_plain(kernel(call)))
    if not is_convertible(literal.value, type_):
        assert found is None
        with pytest.raises((TaskError, OverflowError, ValueError)):
            kernel(call)


def _plain(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


INTEGERS = st.none() | st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31)])
TEXTS = st.none() | st.text("aBé ß%\n", max_size=4)


@given(st.sampled_from(["add", "subtract", "multiply"]), INTEGERS, INTEGERS)
def test_sums_of_integers_are_those_of_the_kernels(op: str, a: int | None, b: int | None) -> None:
    call = Call(op, (Literal(a, INT), Literal(b, INT)), INT)
    found = computed(call)
    if found is None:
        with pytest.raises(TaskError):
            kernel(call)
    else:
        assert found == Literal(kernel(call), INT)


@given(st.sampled_from("concat lower upper trim ltrim rtrim length".split()), TEXTS, TEXTS)
def test_texts_are_those_of_the_kernels(op: str, a: str | None, b: str | None) -> None:
    args = (Literal(a, TEXT), Literal(b, TEXT))
    type_ = INT if op == "length" else TEXT
    call = Call(op, args[:1] if op in ("lower", "upper", "length") else args, type_)
    assert computed(call) == Literal(kernel(call), type_)


def test_what_is_not_constant_or_not_plain_is_left() -> None:
    assert computed(Call("add", (Column("i", INT), Literal(1, INT)), INT)) is None
    assert computed(Call("sqrt", (Literal(4.0, pa.float64()),), pa.float64())) is None
    assert computed(Call("cast", (Literal("x", TEXT),), INT)) is None


def test_a_constant_that_only_a_kernel_can_convert_is_not_refused() -> None:
    assert is_convertible(1.5, TIME)
    assert is_convertible("1.1", pa.float32())
    assert is_convertible(None, INT)
    assert not is_convertible("yesterday", TIME)
