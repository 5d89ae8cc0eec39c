"""The bucket hash: pinned for ever, even, and blind to how equal values are stored."""

from __future__ import annotations

import datetime as dt
import math
import struct
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import QueryError
from tidegate.route.bucket import bucket_of

WORD = 2**64 - 1
SEED = 0x9E3779B97F4A7C15


def mix(word: int) -> int:
    word = (word + SEED) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def twin(values: tuple[Any, ...], buckets: int) -> int:
    """The hash of one row, value by value."""
    total = SEED
    for value in values:
        total = mix(total ^ (0xD6E8FEB86659FD93 if value is None else mix(word_of(value))))
    return total % buckets


def word_of(value: Any) -> int:
    if isinstance(value, str):
        text = value.encode()
        return (
            len(text) + sum((b + 1) * pow(0x100000001B3, i + 1, 2**64) for i, b in enumerate(text))
        ) & WORD
    if isinstance(value, float):
        value = math.nan if math.isnan(value) else value + 0.0
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return int(value) & WORD


TEXT = st.lists(st.one_of(st.none(), st.text(max_size=8)), min_size=1, max_size=20)
INTS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.none(), st.floats())


@given(TEXT, st.data(), st.integers(1, 300), st.integers(0, 3))
def test_rows_hash_as_in_the_twin_also_in_slices(
    text: list[str | None], data: st.DataObject, buckets: int, skip: int
) -> None:
    size = len(text)
    ints = data.draw(st.lists(INTS, min_size=size, max_size=size))
    floats = data.draw(st.lists(FLOATS, min_size=size, max_size=size))
    keys = [pa.array(text, pa.string()), pa.array(ints, pa.int64()), pa.array(floats, pa.float64())]
    sliced = [key.slice(skip) for key in keys]
    expected = [twin(row, buckets) for row in zip(text, ints, floats, strict=True)]
    assert bucket_of(sliced, buckets).tolist() == expected[skip:]


@pytest.mark.parametrize("type_", [pa.decimal128(12, 3), pa.decimal256(40, 3)])
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_sliced_decimals_hash_as_whole_ones(type_: pa.DataType, skip: int) -> None:
    values = [Decimal("1.005"), Decimal("-3.250"), None, Decimal("999999999.999"), Decimal("0.000")]
    hashed = bucket_of([pa.array(values, type_)], 997).tolist()
    assert len(set(hashed)) == len(values)
    part = pa.array(values, type_).slice(skip, 2)
    assert bucket_of([part], 997).tolist() == hashed[skip : skip + 2]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=6), st.integers(0, 2))
def test_long_values_hash_as_in_the_twin(sizes: list[int], skip: int) -> None:
    text = [("Århus, 7. juli; " * (size // 16 + 1))[:size] for size in sizes]
    expected = [twin((value,), 999) for value in text]
    assert bucket_of([pa.array(text).slice(skip)], 999).tolist() == expected[skip:]


def test_hashing_long_values_takes_little_memory() -> None:
    """Eight-byte numbers of all bytes at once took thirty times the text."""
    column = pa.array(["x" * 2**20] * 16)
    tracemalloc.start()
    bucket_of([column], 64)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * column.nbytes


def test_the_hash_never_changes() -> None:
    assert bucket_of([pa.array(["", "a", "Århus", None])], 1024).tolist() == PINNED["text"]
    assert bucket_of([pa.array([0, 1, -1, 2**40, None])], 1024).tolist() == PINNED["int"]
    assert bucket_of([pa.array([0.0, 1.5, math.nan])], 1024).tolist() == PINNED["float"]
    decimals = pa.array([Decimal("1.20"), Decimal("-7.00")])
    assert bucket_of([decimals, pa.array([True, None])], 1024).tolist() == PINNED["pair"]


PINNED = {
    "text": [222, 635, 277, 544],
    "int": [222, 211, 300, 603, 544],
    "float": [222, 749, 848],
    "pair": [970, 140],
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, -5, None], pa.int32()), pa.array([1, -5, None], pa.int64())),
        (pa.array([1, 5], pa.uint8()), pa.array([1, 5], pa.int64())),
        (pa.array([0.5, None], pa.float32()), pa.array([0.5, None], pa.float64())),
        (pa.array([-0.0, -math.nan]), pa.array([0.0, math.nan])),
        (pa.array(["a", None], pa.large_string()), pa.array(["a", None], pa.string())),
        (pa.array([b"ab"], pa.binary(2)), pa.array(["ab"])),
        (pa.nulls(2, pa.null()), pa.nulls(2, pa.string())),
    ],
)
def test_equal_values_share_a_bucket_however_stored(one: pa.Array, other: pa.Array) -> None:
    assert bucket_of([one], 997).tolist() == bucket_of([other], 997).tolist()


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(np.arange(64_000)),
        pa.array(np.arange(64_000) * 4096),
        pa.array(np.arange(64_000) / 8),
        pa.array([f"taxi-{i:06d}" for i in range(64_000)]),
        pa.array([Decimal(i) for i in range(64_000)]),
    ],
)
def test_regular_keys_spread_evenly(keys: pa.Array) -> None:
    counts = np.bincount(bucket_of([keys], 64), minlength=64)
    assert 850 < counts.min() <= counts.max() < 1150


def test_column_order_matters_and_dates_and_flags_hash() -> None:
    a, b = pa.array(np.arange(1000)), pa.array(np.arange(1000)[::-1].copy())
    assert bucket_of([a, b], 512).tolist() != bucket_of([b, a], 512).tolist()
    days = pa.array([dt.date(2024, 1, 1), None])
    assert len(set(bucket_of([days], 2**30).tolist())) == 2
    assert len(set(bucket_of([pa.array([True, False, None])], 2**30).tolist())) == 3


def test_without_keys_there_is_one_bucket() -> None:
    assert bucket_of([], 64, rows=3).tolist() == [0, 0, 0]
    assert bucket_of([pa.array([], pa.string())], 64).tolist() == []


def test_what_cannot_be_compared_has_no_bucket() -> None:
    with pytest.raises(QueryError, match="bucket: a key must have a type that can be compared"):
        bucket_of([pa.array([[1]])], 4)
