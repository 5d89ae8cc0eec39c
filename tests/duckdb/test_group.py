"""Groups by one, several and computed keys, their order included, against DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.compare import check

NAN = float("nan")


@pytest.mark.parametrize("key", data.KEYS)
def test_one_key(key: str) -> None:
    rows = data.rows(np.random.default_rng(21), 120)
    text = (
        f"SELECT {key} AS g, COUNT(*) AS n, SUM(i) AS s, FIRST(f) AS f FROM s "
        f"[RANGE 5 MINUTES SLIDE 2 MINUTES] GROUP BY {key}"
    )
    check(text, {"s": rows}, batch_rows=70, instances=3)


@pytest.mark.parametrize("seed", range(6))
def test_several_keys(seed: int) -> None:
    draw = np.random.default_rng(seed)
    keys = list(draw.choice(data.KEYS, 2 + seed % 3, replace=False))
    shown = list(draw.permutation(len(keys)))[: 1 + seed % 3]
    items = ", ".join(f"{keys[n]} AS g{n}" for n in shown)
    text = (
        f"SELECT {items}, COUNT(*) AS n, AVG(d) AS a FROM s [RANGE 10 MINUTES SLIDE 4 MINUTES] "
        f"GROUP BY {', '.join(keys)}"
    )
    check(text, {"s": data.rows(draw, 200)}, batch_rows=90, instances=2)


def test_keys_that_are_not_selected_still_make_groups_and_order() -> None:
    rows = data.rows(np.random.default_rng(22), 150)
    text = "SELECT COUNT(*) AS n FROM s [RANGE 10 MINUTES] GROUP BY s, k"
    check(text, {"s": rows}, batch_rows=60, instances=2)


def test_keys_by_position_and_alias() -> None:
    rows = data.rows(np.random.default_rng(23), 100)
    text = "SELECT i % 3 AS r, upper(s) AS u, COUNT(*) AS n FROM s [RANGE 10 MINUTES] GROUP BY u, 1"
    check(text, {"s": rows}, batch_rows=60, instances=2)


def test_a_key_beside_an_expression_over_it() -> None:
    rows = data.rows(np.random.default_rng(24), 100)
    text = (
        "SELECT k, k * 10 + COUNT(*) AS e, window_end AS w FROM s [RANGE 10 MINUTES] "
        "GROUP BY k, window_start HAVING k IS NULL OR k > 1"
    )
    check(text, {"s": rows}, batch_rows=60, instances=2)


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
def test_float_keys_nan_and_both_zeros(type_: pa.DataType) -> None:
    """In both engines NaN equals NaN, is greater than any number, and -0.0 equals 0.0."""
    values = [0.0, -0.0, NAN, None, -NAN, float("inf"), -float("inf"), 1.5, -0.0, NAN]
    rows = pa.table(
        {
            "ts": pa.array(range(10), pa.timestamp("us")),
            "z": pa.array(values, type_, from_pandas=False),
            "i": pa.array(range(10), pa.int64()),
        }
    )
    text = "SELECT z, COUNT(*) AS n, SUM(i) AS s FROM s [RANGE 1 SECOND] GROUP BY z"
    got = check(text, {"s": rows}, batch_rows=3, instances=3)
    assert got.column("n").to_pylist() == [1, 1, 3, 1, 1, 3]


def test_strings_are_ordered_by_their_bytes() -> None:
    words = ["", "A", "a", "É", "é", "z", "日", "𝄞", "a\x00b", "a b", None, "Z", "ab"]
    rows = pa.table(
        {"ts": pa.array(range(len(words)), pa.timestamp("us")), "w": pa.array(words, pa.string())}
    )
    check("SELECT w, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY w", {"s": rows}, instances=3)
