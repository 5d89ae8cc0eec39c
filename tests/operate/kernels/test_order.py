"""Order-preserving integers: they sort as the values do, and lead back to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.aggregate.stream import POOLS
from tests.oracle.aggregate import sort_key
from tidegate.operate.kernels.order import canonical, floats, is_ordered, ordered, spread

VALUES = [(type_, [v for v in pool if v is not None]) for type_, pool in POOLS.values()]
MORE = [
    (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    (pa.int8(), [-128, 127, 0]),
    (pa.binary(2), [b"\x00\x01", b"\xff\x00"]),
    (pa.time64("us"), [0, 5, 86_399_999_999]),
    (pa.duration("us"), [-5, 0, 7]),
    (pa.date64(), [-86_400_000, 0, 86_400_000]),
    (pa.float64(), [-math.inf, -5e-324, 5e-324, math.inf, math.nan, -1.0]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES + MORE)
def test_keys_sort_as_values_do_and_decode_to_them(type_: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, type_)
    made = ordered(column)
    for a, x in zip(column.to_pylist(), made.keys, strict=True):
        for b, y in zip(column.to_pylist(), made.keys, strict=True):
            if sort_key(a) < sort_key(b):
                assert x < y
    back = made.decode(made.keys)
    assert back.type == type_
    assert repr(back.to_pylist()) == repr(column.to_pylist())
    assert is_ordered(type_)


def test_all_nan_are_one_and_zero_has_no_sign() -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    column = pa.array([*odd, -0.0, None], pa.float64())
    bits = canonical(column).slice(0, 3).to_numpy().view(np.uint64).tolist()
    assert bits == [0x7FF8000000000000, 0x7FF8000000000000, 0]
    assert canonical(column).null_count == 1
    assert len(set(ordered(column.slice(0, 2)).keys.tolist())) == 1


@given(st.integers(0, 38), st.data())
def test_decimals_become_the_nearest_doubles(scale: int, data: st.DataObject) -> None:
    number = st.one_of(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-(10**6), 10**6))
    numbers = data.draw(st.lists(number, min_size=1, max_size=5))
    words = b"".join(n.to_bytes(16, "little", signed=True) for n in [0, *numbers])
    type_ = pa.decimal128(38, scale)
    column = pa.Array.from_buffers(type_, len(numbers) + 1, [None, pa.py_buffer(words)]).slice(1)
    assert floats(column).tolist() == [n / 10**scale for n in numbers]


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12))
def test_spread_puts_values_back_among_nulls(values: list[int | None]) -> None:
    column = pa.array(values, pa.int64())
    has = np.array([v is not None for v in values], np.bool_)
    assert spread(column.drop_null(), has).to_pylist() == values
