"""Group numbers against sorting in Python: order kept, none missing, none empty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.aggregate import sort_key
from tidegate.operate.kernels.group import Rank, dense, pack, rank, stable_order
from tidegate.operate.kernels.order import CODED, coded

FLOATS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, math.nan, -1.5, math.inf, 1e-300]))
INTS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))
TEXT = st.one_of(st.none(), st.text(max_size=2))


@given(st.lists(st.tuples(FLOATS, INTS, TEXT), max_size=30))
def test_numbers_follow_the_order_of_the_keys(rows: list[tuple[Any, ...]]) -> None:
    types = (pa.float64(), pa.int64(), pa.string())
    columns = [pa.array([r[i] for r in rows], type_) for i, type_ in enumerate(types)]
    groups = dense(pack([rank(column) for column in columns], len(rows)))
    keys = [tuple(map(sort_key, row)) for row in rows]
    ascending = sorted(set(keys))
    assert groups.codes.tolist() == [ascending.index(key) for key in keys]
    assert groups.n == len(ascending)


@given(st.lists(TEXT, max_size=30))
def test_codes_are_grouped_as_their_texts_are(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    coded_column = coded(column)
    assert coded_column.type == CODED[pa.string()]
    assert coded_column.cast(pa.string()) == column
    as_codes, as_texts = (dense(rank(c)) for c in (coded_column, column))
    assert as_codes.codes.tolist() == as_texts.codes.tolist()


def test_many_wide_columns_are_packed_without_overflow() -> None:
    chance = np.random.default_rng(0)
    columns = [pa.array(chance.integers(-(2**62), 2**62, 3000)) for _ in range(9)]
    columns = [pa.concat_arrays([column, column]) for column in columns]
    groups = dense(pack([rank(column) for column in columns], 6000))
    assert groups.n == 3000
    assert (groups.codes[:3000] == groups.codes[3000:]).all()
    assert (np.diff(columns[0].to_numpy()[groups.rows]) >= 0).all()


@given(st.lists(st.sampled_from([0, 1, 65535, 65536, 70000, 2**33]), max_size=40))
def test_the_stable_order_is_stable(codes: list[int]) -> None:
    numbers = np.array(codes, np.int64)
    expected = sorted(range(len(codes)), key=lambda i: codes[i])
    assert stable_order(numbers, 2**33 + 1).tolist() == expected


def test_an_empty_column_has_no_groups() -> None:
    assert dense(Rank(np.zeros(0, np.int64), 7)).n == 0
    assert dense(pack([rank(pa.array([], pa.string()))], 0)).n == 0
