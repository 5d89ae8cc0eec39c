"""Rows and queries drawn from a seeded generator, for both engines."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

Generator = np.random.Generator

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int32()),
        ("i", pa.int64()),
        ("b", pa.int8()),
        ("big", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("d", pa.decimal128(12, 3)),
        ("s", pa.string()),
        ("t", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
NUMBERS = ("i", "b", "big", "f", "g", "d")
OTHERS = ("k", "s", "t", "day", "at")
WORDS = ("", "a", "b", "B", "ab", "aé", "z", "zebra", "日本", "a b")

WINDOWS = (
    "[RANGE 60 SECONDS]",
    "[RANGE 1 MINUTE SLIDE 20 SECONDS]",
    "[RANGE 1 MINUTE SLIDE 25 SECONDS]",
    "[RANGE 90 SECONDS SLIDE 7 SECONDS]",
    "[RANGE 1 HOUR SLIDE 17 MINUTES]",
    "[RANGE 2500 MILLISECONDS SLIDE 1500 MILLISECONDS]",
    "[RANGE 1 DAY]",
)
"""Tumbling, slides that divide the range and slides that do not."""

KEYS = (
    "k",
    "s",
    "t",
    "day",
    "i % 3",
    "upper(s)",
    "hour(at)",
    "length(s)",
    "CASE WHEN f > 0 THEN 'high' WHEN f <= 0 THEN 'low' END",
    "coalesce(k, -1)",
    "b",
    "at",
    "d",
    "g",
)
ARGUMENTS = (
    *NUMBERS,
    "i + 1",
    "f * 2 - i",
    "coalesce(i, 0)",
    "length(s)",
    "CASE WHEN t THEN i ELSE 0 END",
    "abs(f)",
    "d + 1",
    "CAST(i AS DOUBLE)",
    "-b",
    "hour(at)",
)
PREDICATES = (
    "f > 0",
    "i IS NOT NULL",
    "s LIKE 'a%'",
    "s IN ('a', 'b', 'zebra')",
    "NOT t",
    "i BETWEEN -5 AND 5",
    "f IS NULL OR i > 2",
    "d >= 1.5",
    "day > DATE '1970-01-05'",
    "at < TIMESTAMP '1970-01-03 00:00:00'",
    "ts >= TIMESTAMP '1969-12-31 23:59:00'",
    "length(s) > 1",
    "i + coalesce(k, 0) > 3",
    "s <> 'a' AND (t OR k = 1)",
    "upper(s) = 'AB' OR s < 'b'",
    "i % 2 = 0",
)
HAVINGS = (
    "COUNT(*) > 1",
    "n >= 2",
    "MAX(i) > 0 AND COUNT(*) < 20",
    "SUM(i) IS NOT NULL",
    "AVG(f) > MIN(f) OR n = 1",
    "COUNT(DISTINCT s) = n",
    "MAX_BY(k, i) > 1 AND NOT BOOL_OR(t)",
    "COUNT_IF(t) > 1 OR COVAR_POP(f, i) > 0",
)
EXACT = ("n", "COUNT(i)", "SUM(i)", "MIN(f)", "MAX(s)", "AVG(f)", "MEDIAN(i)", "LAST(k)")
EXACT += ("MIN_BY(s, f)", "COUNT_IF(i > 0)", "BOOL_AND(t)", "APPROX_COUNT_DISTINCT(s)")
"""What rows can be ordered by: equal to the last bit in both engines."""


def rows(draw: Generator, count: int, span_s: int = 600, nulls: float = 0.15) -> pa.Table:
    """A source in time order around 1970: bursts and gaps, equal times, NULLs in every column.

    Floats are multiples of 1/8, so that their sums are exact in any order.
    """
    bursts = draw.integers(-span_s, span_s, max(1, count // 20))
    times = draw.choice(bursts, count) * 1_000_000 + draw.integers(0, 3_000_000, count) // 250 * 250
    columns = {
        "ts": np.sort(times),
        "k": draw.integers(0, 5, count),
        "i": draw.integers(-20, 20, count),
        "b": draw.integers(-127, 128, count),
        "big": draw.integers(-(2**52), 2**52, count),
        "f": draw.integers(-8000, 8000, count) / 8,
        "g": (draw.integers(-80, 80, count) / 8).astype(np.float32),
        "d": [Decimal(int(v)).scaleb(-3) for v in draw.integers(-5000, 5000, count)],
        "s": [WORDS[w] for w in draw.integers(0, len(WORDS), count)],
        "t": draw.integers(0, 2, count).astype(bool),
        "day": [date(1970, 1, 1) + timedelta(int(n)) for n in draw.integers(-9, 9, count)],
        "at": draw.integers(-(10**12), 10**12, count),
    }
    arrays = []
    for field in SCHEMA:
        missing = draw.random(count) < (0 if field.name == "ts" else nulls)
        values = columns[field.name]
        if field.name in ("d", "s", "day"):
            values = [None if m else v for v, m in zip(values, missing)]
            arrays.append(pa.array(values, field.type))
        else:
            arrays.append(pa.array(values, mask=missing).cast(field.type))
    return pa.table(arrays, schema=SCHEMA)


def functions_of(argument: str, numeric: bool) -> list[str]:
    """Every function that makes sense for an argument."""
    both = ["COUNT({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})", "FIRST({})", "LAST({})"]
    numbers = ["SUM({})", "AVG({})", "VAR({})", "STDDEV({})", "MEDIAN({})", "QUANTILE({}, 0.3)"]
    return [f.format(argument) for f in both + (numbers if numeric else [])]


def functions_of_two(argument: str, numeric: bool) -> list[str]:
    """Every function of two arguments that makes sense with this one, beside others."""
    both = [f"{f}({argument}, {y})" for f in ("MIN_BY", "MAX_BY") for y in ("i", "f", "s", "at")]
    both += [f"{f}(i, {argument})" for f in ("MIN_BY", "MAX_BY")]
    numbers = [f"{f}({argument}, i)" for f in ("CORR", "COVAR_SAMP", "COVAR_POP")]
    return both + (numbers if numeric else [])


def query(draw: Generator, source: str = "s") -> str:
    """A windowed query: keys, aggregates, conditions and an order by chance."""
    keys = list(draw.choice(KEYS, draw.integers(0, 4), replace=False))
    calls = []
    for _ in range(draw.integers(1, 5)):
        numeric = draw.random() < 0.7
        argument = draw.choice(ARGUMENTS if numeric else OTHERS)
        of = functions_of if draw.random() < 0.7 else functions_of_two
        calls.append(draw.choice(of(argument, numeric)))
    items = [f"{e} AS key{n}" for n, e in enumerate(keys)]
    items += ["COUNT(*) AS n", *(f"{c} AS a{n}" for n, c in enumerate(calls))]
    text = f"SELECT {', '.join(items)} FROM {source} {draw.choice(WINDOWS)}"
    if draw.random() < 0.5:
        chosen = draw.choice(PREDICATES, 1 if draw.random() < 0.7 else 2, replace=False)
        text += " WHERE " + " AND ".join(f"({p})" for p in chosen)
    if keys:
        named = [f"key{n}" if draw.random() < 0.3 else e for n, e in enumerate(keys)]
        text += f" GROUP BY {', '.join(named)}"
    if draw.random() < 0.4:
        text += f" HAVING {draw.choice(HAVINGS)}"
    if draw.random() < 0.5:
        text += f" ORDER BY {_order(draw, len(keys))}"
    if draw.random() < 0.4:
        text += f" LIMIT {draw.choice([0, 1, 2, 2, 3, 5])}"
    return text


def _order(draw: Generator, keys: int) -> str:
    possible = [*EXACT, *(f"key{n}" for n in range(keys))]
    chosen = draw.choice(possible, draw.integers(1, 3), replace=False)
    ways = ("", " ASC", " DESC", " DESC NULLS FIRST", " NULLS LAST")
    return ", ".join(f"{c}{draw.choice(ways)}" for c in chosen)
