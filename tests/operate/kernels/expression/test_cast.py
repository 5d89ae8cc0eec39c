from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.expression.kind import kind
from tidegate.operate.kernels.expression.cast import CONVERTERS, cast, try_cast
from tidegate.operate.kernels.expression.failure import RowFailure
from tidegate.schema import TIME

EXACT = Context(prec=400)


@given(
    st.lists(st.none() | st.floats(-1e12, 1e12) | st.integers(-9999, 9999).map(lambda n: n / 8)),
    st.integers(0, 10),
)
def test_doubles_become_the_decimals_they_print_as(numbers: list[float | None], scale: int) -> None:
    type_ = pa.decimal128(20, scale)
    step, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (20 - scale)
    wanted = [
        None if n is None else Decimal(repr(n)).quantize(step, ROUND_HALF_UP, EXACT)
        for n in numbers
    ]
    kept = [None if w is None or abs(w) >= limit else w for w in wanted]
    assert try_cast(type_, pa.array(numbers, pa.float64())).to_pylist() == kept


@given(st.lists(st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=4)))
def test_decimals_become_the_nearest_doubles(numbers: list[Decimal | None]) -> None:
    fit = [n for n in numbers if n is None or abs(n) < 10**30]
    values = pa.array(fit, pa.decimal128(38, 4))
    wanted = [None if n is None else float(n) for n in fit]
    assert cast(pa.float64(), values).to_pylist() == wanted


@given(st.lists(st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=9)))
def test_decimals_print_plainly(numbers: list[Decimal | None]) -> None:
    fit = [n for n in numbers if n is None or abs(n) < 10**20]
    wanted = [None if n is None else format(n + 0, "f") for n in fit]
    got = cast(pa.string(), pa.array(fit, pa.decimal128(30, 9))).to_pylist()
    assert [None if g is None else Decimal(g) for g in got] == fit
    assert all(g is None or ("E" not in g and len(g.split(".")[1]) == 9) for g in got), wanted


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-3", datetime(2020, 3, 1, tzinfo=UTC)),
        (" 2020-3-4 ", datetime(2020, 3, 4, tzinfo=UTC)),
        ("2020-03-04 5", datetime(2020, 3, 4, 5, tzinfo=UTC)),
        ("2020-03-04T5:6", datetime(2020, 3, 4, 5, 6, tzinfo=UTC)),
        ("2020-03-04 05:06:07.1", datetime(2020, 3, 4, 5, 6, 7, 100_000, tzinfo=UTC)),
        ("2020-03-04 05:06:07.123456789", datetime(2020, 3, 4, 5, 6, 7, 123_456, tzinfo=UTC)),
        ("2020-03-04 05:06:07Z", datetime(2020, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2020-03-04 05:06:07+02:30", datetime(2020, 3, 4, 2, 36, 7, tzinfo=UTC)),
        ("2020-03-04 05:06:07 GMT-1", datetime(2020, 3, 4, 6, 6, 7, tzinfo=UTC)),
        ("2020-07-04 05:06:07 Europe/Paris", datetime(2020, 7, 4, 3, 6, 7, tzinfo=UTC)),
        ("2020-02-30", None),
        ("2020-01-01 24:00:00", None),
        ("20-01-01", None),
        ("2020-01-01 05:06:07 Nowhere/Here", None),
        ("2020-01-01 05:06:07+19:00", None),
        ("05:06:07", None),
        ("", None),
    ],
)
def test_times_are_read_in_every_form(text: str, moment: datetime | None) -> None:
    assert try_cast(TIME, pa.array([text])).to_pylist() == [moment]
    mixed = try_cast(TIME, pa.array([text, "2021-01-01 00:00:00", None]))
    assert mixed.to_pylist() == [moment, datetime(2021, 1, 1, tzinfo=UTC), None]


def test_dates_are_read_and_what_follows_them_is_not() -> None:
    texts = pa.array(["2020-1-2", "2020-01-02 junk", "2020-01-02junk", "2020-13-01", None])
    day = date(2020, 1, 2)
    assert try_cast(pa.date32(), texts).to_pylist() == [day, day, None, None, None]


def test_numbers_are_read_as_java_reads_them() -> None:
    texts = pa.array([" +5\t", "-007", "5.0", "", "9223372036854775808", None])
    assert try_cast(pa.int64(), texts).to_pylist() == [5, -7, None, None, None, None]
    texts = pa.array(["1.", ".5", "1e3d", "0x1p3", "Infinity", "-inf", ".", "1e", None])
    wanted = [1.0, 0.5, 1000.0, 8.0, float("inf"), float("-inf"), None, None, None]
    assert try_cast(pa.float64(), texts).to_pylist() == wanted
    assert try_cast(pa.float64(), pa.array(["1e400"])).to_pylist() == [float("inf")]
    texts = pa.array(["1.005", "-1e2", "1e9", "x", "1e-99", None])
    wanted_decimals = [Decimal("1.01"), Decimal(-100), None, None, Decimal(0), None]
    assert try_cast(pa.decimal128(5, 2), texts).to_pylist() == wanted_decimals


def test_a_failure_names_the_value_and_the_remedy() -> None:
    with pytest.raises(RowFailure) as failure:
        cast(pa.int32(), pa.array(["1", "two"]))
    assert failure.value.requirement == "the value must be convertible to int"
    assert failure.value.got == "'two'"
    assert failure.value.remedy == "Use TRY_CAST to get NULL instead."


def test_doubles_beyond_an_integer_type_fail() -> None:
    values = pa.array([127.9, -128.9, 128.0, float("nan"), None])
    assert try_cast(pa.int8(), values).to_pylist() == [127, -128, None, None, None]
    edge = pa.array([2.0**63, -(2.0**63), 2.0**63 * 1.01])
    assert try_cast(pa.int64(), edge).to_pylist() == [2**63 - 1, -(2**63), None]


def test_times_print_without_idle_zeros() -> None:
    micros = pa.array([0, 500_000, 10, -1, None], TIME)
    assert cast(pa.string(), micros).to_pylist() == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.5",
        "1970-01-01 00:00:00.00001",
        "1969-12-31 23:59:59.999999",
        None,
    ]


def test_every_converter_takes_empty_and_null_columns() -> None:
    samples = {
        "integer": pa.int64(), "float": pa.float64(), "decimal": pa.decimal128(10, 2),
        "boolean": pa.bool_(), "string": pa.string(), "timestamp": TIME, "date": pa.date32(),
        "binary": pa.binary(),
    }  # fmt: skip
    for source, target in CONVERTERS:
        for rows in (0, 2):
            result, _ = CONVERTERS[source, target](pa.nulls(rows, samples[source]), samples[target])
            assert result.to_pylist() == [None] * rows
            assert kind(result.type) == target
