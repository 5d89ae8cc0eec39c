from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.text import moment
from tests.source.check import micros
from tidegate.schema import TIME, to_us
from tidegate.source.text.event_time import cast_possible, parse_time

texts = st.one_of(
    st.datetimes().map(lambda d: d.isoformat()),
    st.datetimes().map(lambda d: d.isoformat(" ") + "Z"),
    st.datetimes().map(lambda d: d.isoformat() + "-03:30"),
    st.sampled_from(["2024-01-01", " 2024-01-01T00:00 ", "x", "2024-13-01", "12:00", "20240101"]),
    st.none(),
)


@given(st.lists(texts))
def test_texts_are_times_whatever_stands_beside_them(given_texts: list[str | None]) -> None:
    found, valid = to_us(parse_time(pa.array(given_texts, pa.string())))
    for text, number, is_valid in zip(given_texts, found.tolist(), valid.tolist()):
        try:
            expected = None if text is None else micros(moment(text.strip()))
        except (ValueError, OverflowError):
            expected = None
        assert (number if is_valid else None) == expected


def test_fractions_are_cut_to_microseconds() -> None:
    found, _ = to_us(parse_time(pa.array(["1970-01-01T00:00:00.123456789Z", "1970-01-01"])))
    assert found.tolist() == [123456, 0]


@given(st.lists(st.sampled_from(["1", "-2", "x", "", "99999999999999999999", "7"]) | st.none()))
def test_what_can_be_cast_is(texts: list[str | None]) -> None:
    good = {"1": 1, "-2": -2, "7": 7}
    found = cast_possible(pa.array(texts, pa.string()), pa.int64())
    assert found.to_pylist() == [good.get(t or "") for t in texts]


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_dates_of_both_widths(type_: pa.DataType) -> None:
    numbers, valid = to_us(
        pa.array([None, 86_400_000], pa.int64()).cast(pa.timestamp("ms")).cast(type_)
    )
    assert numbers.tolist() == [0, 86_400_000_000]
    assert valid.tolist() == [False, True]


numbers = st.text("0123456789+-.eExXinfatyINFATY()", min_size=1, max_size=8)
dates = st.text("0123456789-T:Z+ ", min_size=8, max_size=20)


@pytest.mark.parametrize(
    "type_", [pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), TIME], ids=str
)
@given(text=numbers | dates | st.sampled_from(["nan", "-inf", "0x1F", "1e5", "2024-01-01"]))
def test_nothing_that_can_be_cast_is_left_out(type_: pa.DataType, text: str) -> None:
    try:
        expected = pa.array([text]).cast(type_)
    except pa.ArrowInvalid:
        expected = pa.nulls(1, type_)
    found = cast_possible(pa.array([text, "~"]), type_)
    assert str(found[0]) == str(expected[0])
    assert not found[1].is_valid
