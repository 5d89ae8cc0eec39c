"""Queries and rows by chance, cut, divided and switched by chance, against DuckDB."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.duckdb import data
from tests.duckdb.compare import Streamed, check
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("seed", seeds(400 if LONG else 30))
def test_random_queries(seed: int) -> None:
    draw = np.random.default_rng([7, seed])
    rows = data.rows(draw, int(draw.choice([1, 50, 150, 300])))
    options: dict[str, Any] = {
        "batch_rows": int(draw.choice([60, 120, 1000])),
        "instances": int(draw.integers(1, 4)),
        "buckets": int(draw.choice([4, 64])),
        "switches": {1: int(draw.integers(1, 5))},
    }
    check(data.query(draw), {"s": rows}, **options)


NUMBER = st.sampled_from([None, 0.0, -0.0, 1.0, 1.0, -2.5, float("nan"), float("inf"), 3.25])
TUPLE = st.tuples(
    st.integers(-12, 12),
    st.sampled_from([None, "", "a", "b"]),
    NUMBER,
    st.sampled_from([None, -3, 0, 7, 7]),
)
WINDOW = st.integers(1, 9).flatmap(lambda slide: st.tuples(st.integers(slide, 20), st.just(slide)))
ITEMS = (
    "COUNT(*) AS n, COUNT(x) AS c, COUNT(DISTINCT x) AS u, MIN(x) AS lo, MAX(x) AS hi, "
    "SUM(i) AS t, AVG(i) AS m, VAR(i) AS v, MEDIAN(i) AS d, QUANTILE(i, 0.7) AS q, "
    "FIRST(x) AS f, LAST(i) AS l, MAX(w) AS word"
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    times, words, numbers, integers = zip(*rows, strict=True) if rows else ((),) * 4
    return pa.table(
        {
            "ts": pa.array(times, TIME),
            "w": pa.array(words, pa.string()),
            "x": pa.array(numbers, pa.float64(), from_pandas=False),
            "i": pa.array(integers, pa.int32()),
        }
    )


@settings(max_examples=300 if LONG else 16)
@given(
    sources=st.lists(st.lists(TUPLE, max_size=12), min_size=1, max_size=3),
    window=WINDOW,
    key=st.sampled_from(["", "w", "x", "i", "w, i"]),
    disorder_us=st.sampled_from([0, 0, 3, 50]),
    batch_rows=st.integers(3, 20),
    instances=st.integers(1, 3),
)
def test_any_rows_in_any_order(
    sources: list[list[tuple[Any, ...]]],
    window: tuple[int, int],
    key: str,
    disorder_us: int,
    batch_rows: int,
    instances: int,
) -> None:
    """Sources out of order too: what is late by the definition counts in neither engine."""
    text = (
        f"SELECT {f'{key}, ' if key else ''}{ITEMS} FROM s "
        f"[RANGE {window[0]} MICROSECONDS SLIDE {window[1]} MICROSECONDS]"
        f"{f' GROUP BY {key}' if key else ''}"
    )
    stream = Streamed([table(rows) for rows in sources], disorder_us=disorder_us)
    check(text, {"s": stream}, batch_rows=batch_rows, instances=instances, buckets=8)


@settings(max_examples=200 if LONG else 12)
@given(
    left=st.lists(TUPLE, max_size=10),
    right=st.lists(TUPLE, max_size=10),
    batch_rows=st.integers(2, 12),
    instances=st.integers(1, 3),
)
def test_any_union_in_the_total_order(
    left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], batch_rows: int, instances: int
) -> None:
    text = "SELECT w, x FROM a WHERE i >= 0 UNION ALL SELECT upper(w), x + 1 FROM b"
    streams = {"a": Streamed([table(left)]), "b": Streamed([table(right)])}
    check(text, streams, batch_rows=batch_rows, instances=instances)
