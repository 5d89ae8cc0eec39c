"""Every aggregate function over every type of argument, against DuckDB, with Spark's types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.compare import check, database

SEEDS = (1, 2)
TIME = pa.timestamp("us", tz="UTC")
SPARK_TYPES = {
    "i": (pa.int64(), pa.float64()),
    "b": (pa.int64(), pa.float64()),
    "big": (pa.int64(), pa.float64()),
    "f": (pa.float64(), pa.float64()),
    "g": (pa.float64(), pa.float64()),
    "d": (pa.decimal128(22, 3), pa.decimal128(16, 7)),
}
"""The types of SUM and AVG in Spark."""


def all_of(argument: str, numeric: bool) -> str:
    calls = data.functions_of(argument, numeric)
    return ", ".join(f"{c} AS a{n}" for n, c in enumerate(calls))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("column", data.NUMBERS)
def test_all_functions_of_numbers(column: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = data.rows(draw, 150)
    window = "[RANGE 1 MINUTE SLIDE 25 SECONDS]" if seed == 1 else "[RANGE 5 MINUTES]"
    text = f"SELECT k, {all_of(column, True)} FROM s {window} GROUP BY k"
    got = check(text, {"s": rows}, batch_rows=60, instances=2)
    own = data.SCHEMA.field(column).type
    counts, edges, doubles = [pa.int64()] * 2, [own] * 4, [pa.float64()] * 4
    assert got.num_rows > 10
    assert got.schema.types[3:] == [*counts, *edges, *SPARK_TYPES[column], *doubles]


@pytest.mark.parametrize("column", data.OTHERS)
def test_all_functions_of_other_values(column: str) -> None:
    rows = data.rows(np.random.default_rng(3), 150)
    text = f"SELECT t, {all_of(column, False)} FROM s [RANGE 1 MINUTE SLIDE 20 SECONDS] GROUP BY t"
    got = check(text, {"s": rows}, batch_rows=70, instances=2)
    own = data.SCHEMA.field(column).type
    assert got.schema.types[3:] == [pa.int64(), pa.int64(), own, own, own, own]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("column", [*data.NUMBERS, *data.OTHERS])
def test_all_functions_of_two_arguments(column: str, seed: int) -> None:
    rows = data.rows(np.random.default_rng(seed + 10), 150)
    calls = data.functions_of_two(column, column in data.NUMBERS)
    items = ", ".join(f"{c} AS a{n}" for n, c in enumerate(calls))
    window = "[RANGE 1 MINUTE SLIDE 25 SECONDS]" if seed == 1 else "[RANGE 5 MINUTES]"
    text = f"SELECT k, {items} FROM s {window} GROUP BY k"
    got = check(text, {"s": rows}, batch_rows=60, instances=2)
    own, doubles = data.SCHEMA.field(column).type, [pa.float64()] * (len(calls) - 10)
    assert got.num_rows > 10
    assert got.schema.types[3:] == [*[own] * 8, pa.int64(), pa.int64(), *doubles]


def test_conditions_and_about_how_many() -> None:
    rows = data.rows(np.random.default_rng(7), 300)
    conditions = ("t", "i > 0", "s LIKE 'a%'", "f IS NULL OR t")
    names = ("BOOL_AND", "EVERY", "BOOL_OR", "SOME", "COUNT_IF")
    items = [f"{f}({c}) AS {f.lower()}{n}" for n, c in enumerate(conditions) for f in names]
    items += [f"APPROX_COUNT_DISTINCT({c}) AS about_{c}" for c in ("k", "s", "t", "day", "g")]
    items += ["BOOL_OR(t) FILTER (WHERE i > 15) AS some", "COUNT_IF(t) FILTER (WHERE k = 1) AS n"]
    items += ["APPROX_COUNT_DISTINCT(s, 0.01) FILTER (WHERE t) AS few"]
    items += ["MIN_BY(s, f) FILTER (WHERE t) AS low", "MAX_BY(s, i + 1) FILTER (WHERE k > 2) AS hi"]
    items += ["COVAR_POP(f, i) FILTER (WHERE t) AS c", "MAX(s) FILTER (WHERE i = 99) AS nothing"]
    text = f"SELECT k, {', '.join(items)} FROM s [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY k"
    text += " HAVING COUNT_IF(t) >= 0 ORDER BY MAX_BY(i, f) DESC, BOOL_AND(t), k LIMIT 4"
    got = check(text, {"s": rows}, batch_rows=70, instances=2)
    assert got.num_rows > 10


@pytest.mark.parametrize("fraction", ["0", "0.01", "0.25", "0.5", "0.999", "1", "1.0"])
def test_quantiles_interpolate(fraction: str) -> None:
    rows = data.rows(np.random.default_rng(4), 120)
    items = ", ".join(f"QUANTILE({c}, {fraction}) AS q_{c}" for c in data.NUMBERS)
    check(f"SELECT {items} FROM s [RANGE 5 MINUTES SLIDE 2 MINUTES]", {"s": rows}, batch_rows=50)


@pytest.mark.parametrize("seed", SEEDS)
def test_arguments_that_are_expressions(seed: int) -> None:
    rows = data.rows(np.random.default_rng(seed), 150)
    arguments = data.ARGUMENTS[len(data.NUMBERS) :]
    items = [f"SUM({a}) AS s{n}, MAX({a}) AS m{n}" for n, a in enumerate(arguments)]
    items += [f"COUNT({p}) AS c{n}" for n, p in enumerate(data.PREDICATES)]
    items += ["MIN(upper(s)) AS u", "SUM(i) + COUNT(*) * 2 AS e", "MAX(f) - MIN(f) AS range"]
    items += ["COUNT(*) FILTER (WHERE i > 0) AS positive", "SUM(f) FILTER (WHERE t) AS some"]
    items += [
        "COUNT(DISTINCT i % 3) FILTER (WHERE t) AS few",
        "MEDIAN(i) FILTER (WHERE k = 1) AS q",
    ]
    text = f"SELECT {', '.join(items)} FROM s [RANGE 1 MINUTE SLIDE 30 SECONDS]"
    check(text, {"s": rows}, batch_rows=60)


def test_names_that_mean_the_same() -> None:
    rows = data.rows(np.random.default_rng(5), 100)
    names = "AVG MEAN VAR VARIANCE VAR_SAMP STDDEV STDDEV_SAMP STD MEDIAN".split()
    items = ", ".join(f"{n}(f) AS a{i}" for i, n in enumerate(names))
    text = f"SELECT {items}, PERCENTILE(f, 0.4) AS p FROM s [RANGE 2 MINUTES]"
    got = check(text, {"s": rows}, batch_rows=40).to_pydict()
    assert got["a0"] == got["a1"]
    assert got["a2"] == got["a3"] == got["a4"]
    assert got["a5"] == got["a6"] == got["a7"]


def test_the_mean_of_decimals_is_exact() -> None:
    """DuckDB has no decimal AVG: its exact integers round half up to four more places."""
    rows = data.rows(np.random.default_rng(6), 200)
    got = check("SELECT k, AVG(d) AS a FROM s [RANGE 1 MINUTE] GROUP BY k", {"s": rows})
    wanted = database().sql("""
        WITH sums AS (
            SELECT floor("~ts" / 6e7) AS w, k, (sum(d) * 1000)::HUGEINT AS total, count(d) AS n
            FROM s GROUP BY ALL)
        SELECT CASE WHEN n > 0 THEN
            (sign(total) * ((abs(total) * 20000 + n) // (2 * n)))::HUGEINT END
        FROM sums ORDER BY w, k NULLS FIRST""")
    exact = [None if a is None else int(a.scaleb(7)) for a in got.column("a").to_pylist()]
    assert exact == [row[0] for row in wanted.fetchall()]


def test_sums_of_bigints_near_the_border_are_exact() -> None:
    top = 2**63 - 1
    rows = pa.table(
        {
            "ts": pa.array([1, 2, 3, 4, 5], pa.timestamp("us")),
            "x": pa.array([top, -top, top - 1, 1, -top - 1], pa.int64()),
        }
    )
    window = "[RANGE 5 MICROSECONDS SLIDE 2 MICROSECONDS]"
    text = f"SELECT SUM(x) AS s, AVG(x) AS a, MEDIAN(x) AS m FROM s {window}"
    wanted = pa.table({"ts": rows["ts"], "x": [top, -top, top - 1, 1, -top]})
    check(text, {"s": wanted}, batch_rows=2)
    check(text.replace("SUM(x) AS s, ", ""), {"s": rows}, batch_rows=2)
