"""Conjuncts as interval tests: what each spelling gives, and that no true pair is refused."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TaskError
from tidegate.expression.tree import Expr, describe
from tidegate.operate.join.spec import BAND, BOUND, EQUAL, PairInterval
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.join.conjunct import Conjunct, intervals_of
from tidegate.query.binder import UnknownKernel, bind_predicate
from tidegate.schema import TIME

KINDS: Mapping[str, pa.DataType] = {
    "i": pa.int32(),
    "b": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "m": pa.decimal128(12, 3),
    "w": pa.decimal128(38, 10),
    "t": TIME,
    "y": pa.date32(),
    "s": pa.string(),
    "o": pa.bool_(),
}
"""Columns of both sides by kind: l_i and l_i2 are ints of the left, r_i of the right."""

TYPES = {f"{side}_{k}{n}": t for side in "lr" for k, t in KINDS.items() for n in ("", "2")}
LEFT = {name for name in TYPES if name.startswith("l")}


def intervals(text: str) -> tuple[PairInterval, ...]:
    tree = sqlglot.parse_one(text, dialect="spark")
    return intervals_of([Conjunct(bind_predicate(tree, TYPES, "ON"), text)], LEFT)


def shape(interval: PairInterval) -> tuple[str, int]:
    bounds = (
        interval.left_low,
        interval.left_high,
        interval.right_low,
        interval.right_high,
    )
    return interval.kind, sum(b is not None for b in bounds)


SHAPES = {
    "l_i = r_i": [(EQUAL, 0)],
    "l_s = r_s": [(EQUAL, 0)],
    "r_s = l_s AND l_i = r_i": [(EQUAL, 0), (EQUAL, 0)],
    "l_i = r_i + 1": [(EQUAL, 0)],
    "UPPER(l_s) = r_s": [(EQUAL, 0)],
    "l_i = r_d": [(EQUAL, 0)],
    "l_i <=> r_i": [(EQUAL, 0)],
    "NOT (l_i <> r_i)": [(EQUAL, 0)],
    "l_i = r_i OR FALSE": [(EQUAL, 0)],
    "(l_i = r_i) IS TRUE": [(EQUAL, 0)],
    "COALESCE(l_i = r_i, FALSE)": [(EQUAL, 0)],
    "l_i = r_i OR (l_i IS NULL AND r_i IS NULL)": [(EQUAL, 0)],
    "(l_i = r_i AND l_o) OR (l_i = r_i AND r_o)": [(EQUAL, 0)],
    "(l_i = r_i AND l_i2 < r_i2) OR (l_o AND l_i = r_i)": [(EQUAL, 0)],
    "CASE WHEN l_o THEN l_i = r_i ELSE FALSE END": [(EQUAL, 0)],
    "CASE l_i WHEN r_i THEN TRUE END": [(EQUAL, 0)],
    "l_i IN (r_i, r_i)": [(EQUAL, 0)],
    "NOT (l_i <> r_i OR l_s <> r_s)": [(EQUAL, 0), (EQUAL, 0)],
    "l_i - r_i = 3": [(BAND, 4)],
    "ABS(l_i - r_i) <= 10": [(BAND, 4)],
    "ABS(r_d - l_d) < 0.5": [(BAND, 4)],
    "10 >= ABS(l_i - r_i)": [(BAND, 4)],
    "l_i BETWEEN r_i - 10 AND r_i + 10": [(BAND, 4)],
    "r_i BETWEEN l_i - 10 AND l_i + 10": [(BAND, 4)],
    "l_i - r_i BETWEEN -10 AND 5": [(BAND, 4)],
    "l_i + r_i BETWEEN 0 AND 10": [(BAND, 4)],
    "l_i >= r_i - 10 AND l_i <= r_i + 10": [(BAND, 4)],
    "l_i - 10 < r_i AND r_i < l_i + 10": [(BAND, 4)],
    "l_i < r_i + 10 AND l_i + 10 > r_i": [(BAND, 4)],
    "NOT (l_i > r_i + 10) AND NOT (l_i < r_i - 10)": [(BAND, 4)],
    "ABS(l_i - r_i) <= l_i2": [(BAND, 3)],
    "ABS(l_i - r_i) <= r_i2": [(BAND, 3)],
    "l_i BETWEEN r_i AND r_i2": [(BAND, 3)],
    "l_i BETWEEN r_i AND r_d": [(BAND, 3)],
    "l_b BETWEEN r_d AND r_b": [(BAND, 3)],
    "l_m BETWEEN r_f AND r_m": [(BAND, 3)],
    "l_t BETWEEN r_t - INTERVAL 5 SECONDS AND r_t": [(BAND, 4)],
    "l_t - r_t <= INTERVAL 5 SECONDS AND l_t >= r_t": [(BAND, 4)],
    "ABS(unix_micros(l_t) - unix_micros(r_t)) < 1000": [(BAND, 4)],
    "l_y BETWEEN r_y AND r_y + INTERVAL 3 DAYS": [(BAND, 3)],
    "l_m BETWEEN r_m - 0.5 AND r_m + 0.5": [(BAND, 4)],
    "l_i < r_i": [(BOUND, 2)],
    "l_i <= r_i + 5": [(BOUND, 2)],
    "l_d - r_d > 1": [(BOUND, 2)],
    "l_i < r_i AND l_i2 > r_i2": [(BOUND, 2), (BOUND, 2)],
    "ABS(l_i) <= r_i": [(BOUND, 2), (BOUND, 2)],
    "l_i < r_i AND l_s = r_s AND l_i > r_i - 3": [(BAND, 4), (EQUAL, 0)],
    # What says nothing, or what must wait for its pair.
    "l_i <> r_i": [],
    "l_s < r_s": [],
    "l_i < 5": [],
    "l_i < r_i OR l_i > r_i + 3": [],
    "l_i = r_i OR l_i = r_i2": [],
    "CASE WHEN l_i < 5 THEN l_i + 1 = r_i ELSE FALSE END": [],
    "l_i = r_i AND FALSE": [(EQUAL, 0)],
    "NOT (l_i <=> r_i)": [],
    "SQRT(POWER(l_d - r_d, 2)) < 5": [],
    "(l_i - r_i) + (l_i2 - r_i2) < 5": [],
    "2 * (l_i - r_i) < 5": [],
    "l_i / l_i2 < r_i": [],
    "l_s = r_i": [],
    "l_o < r_o": [],
}


@pytest.mark.parametrize("text", SHAPES)
def test_shapes(text: str) -> None:
    assert [shape(i) for i in intervals(text)] == SHAPES[text]


def test_a_comparison_as_written_is_not_widened() -> None:
    (bound,) = intervals("l_b <= r_b")
    assert describe(bound.right_high or bound.left_value) == "r_b"
    (moved,) = intervals("l_b - r_b <= 5")
    assert "ABS(r_b)" in describe(moved.right_high or moved.left_value)


def test_two_conjuncts_become_one_band_that_names_both() -> None:
    texts = ["l_i < r_i + 10", "l_s = r_s", "l_i > r_i - 10"]
    parts = [
        Conjunct(bind_predicate(sqlglot.parse_one(t, dialect="spark"), TYPES, "ON"), t)
        for t in texts
    ]
    band, equal = intervals_of(parts, LEFT)
    assert (band.kind, band.text) == (BAND, "l_i < r_i + 10 AND l_i > r_i - 10")
    assert (equal.kind, equal.text) == (EQUAL, "l_s = r_s")


# --- no pair for which the predicate is true is refused ---------------------------------------


EDGES: Mapping[str, list[Any]] = {
    "i": [0, 1, -1, 7, 10, -10, 2**31 - 1, -(2**31), None],
    "b": [0, 1, 10, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), None],
    "f": [0.0, -0.0, 0.1, 10.0, 16777216.0, 3e38, math.inf, -math.inf, math.nan, None],
    "d": [0.0, 0.1, 0.3, 1e16, 1e-300, 1.7e308, math.inf, -math.inf, math.nan, None],
    "m": [Decimal("0.1"), Decimal("123456789.123"), Decimal(-5), None],
    "w": [Decimal("0.1"), Decimal("9999999999999999999999999999.1234567891"), None],
    "t": [
        dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC),
        dt.datetime(1969, 7, 20, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
        None,
    ],
    "y": [dt.date(2024, 2, 29), dt.date(1970, 1, 1), None],
}
RANDOM: Mapping[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-30, 30),
    "b": st.integers(-30, 30) | st.integers(2**53 - 3, 2**53 + 3),
    "f": st.floats(-30, 30, width=32),
    "d": st.floats(-30, 30) | st.floats(),
    "m": st.decimals(-30, 30, places=3),
    "w": st.decimals(-30, 30, places=10),
    "t": st.integers(-20_000_000, 20_000_000).map(
        lambda us: dt.datetime(2024, 1, 31, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)
    ),
    "y": st.integers(-5, 5).map(lambda d: dt.date(2024, 2, 28) + dt.timedelta(days=d)),
}
NUMBERS = ("i", "b", "f", "d", "m", "w")
CONSTANTS = ("0", "1", "10", "(-3)", "0.1", "2.5", "1e-3", "1e16", "9007199254740993")
SPELLINGS = (
    "{l} <= {r}",
    "{l} < {r} + {c}",
    "{l} - {c} > {r}",
    "{l} - {r} <= {c}",
    "{r} - {l} >= {c}",
    "{c} <= {l} - {r}",
    "{l} + {r} < {c}",
    "-{l} + {c} <= {r}",
    "ABS({l} - {r}) <= {c}",
    "ABS({r} - {l} + {c}) < {k}",
    "ABS({l} - {r}) <= {l2}",
    "ABS({l} - {r}) < {r2} + {c}",
    "{l} BETWEEN {r} - {c} AND {r} + {k}",
    "{r} BETWEEN {l} - {l2} AND {l} + {c}",
    "{l} BETWEEN {r} AND {r2}",
    "{l} - {r} BETWEEN -{k} AND {c}",
    "{l} >= {r} - {c} AND {l} - {r} <= {k}",
    "{l} <= {r} + {c} AND {l} - {r} >= -{k}",
    "{r} - {l} >= -{c} AND {l} - {r} >= -{k}",
    "{l} = {r}",
    "{l} = {r} + {c}",
    "{l} - {r} = {c}",
    "{l} - {c} = {r} - {l2}",
    "NOT ({l} < {r} - {c}) AND NOT ({l} > {r} + {k})",
)
TEMPORAL = (
    "{l} - {r} <= INTERVAL 3 SECONDS",
    "{l} BETWEEN {r} - INTERVAL 2 SECONDS AND {r}",
    "{l} BETWEEN {r} - INTERVAL 1 DAY AND {r} + INTERVAL 36 HOURS",
    "{r} >= {l} AND {r} - {l} < INTERVAL 1500 MILLISECONDS",
    "{l} < {r}",
    "{l} = {r}",
)


@st.composite
def predicates(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A predicate over both sides and the columns it may read."""
    if draw(st.integers(0, 5)) == 0:
        kinds = [draw(st.sampled_from(("t", "y"))) for _ in range(2)]
        names = {"l": f"l_{kinds[0]}", "r": f"r_{kinds[1]}"}
        return draw(st.sampled_from(TEMPORAL)).format(**names), list(names.values())
    kinds = [draw(st.sampled_from(NUMBERS)) for _ in range(4)]
    names = {
        "l": f"l_{kinds[0]}",
        "r": f"r_{kinds[1]}",
        "l2": f"l_{kinds[2]}2",
        "r2": f"r_{kinds[3]}2",
    }
    constants = {k: draw(st.sampled_from(CONSTANTS)) for k in "ck"}
    return draw(st.sampled_from(SPELLINGS)).format(**names, **constants), list(names.values())


def values(column: str) -> st.SearchStrategy[Any]:
    kind = column[2]
    return RANDOM[kind] | st.sampled_from(EDGES[kind])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_true_pair_is_refused(data: st.DataObject) -> None:
    text, names = data.draw(predicates())
    try:
        found = intervals(text)
    except UnknownKernel:
        return
    rows = [data.draw(st.tuples(*(values(n) for n in names))) for _ in range(8)]
    near = [
        tuple(row[0] if n[2] == names[0][2] else v for n, v in zip(names, row, strict=True))
        for row in rows
    ]
    columns = zip(names, zip(*rows, *near, strict=True), strict=True)
    table = pa.table({n: pa.array(column, TYPES[n]) for n, column in columns})
    for part in (table.slice(i, 1) for i in range(table.num_rows)):
        if is_true(text, part):
            for interval in found:
                assert passes(interval, part), (text, part.to_pylist(), interval)


def test_pairs_at_the_edge_of_a_band() -> None:
    """Doubles one step on either side of the bound, where moving a term rounds differently."""
    generator = np.random.default_rng(4)
    x = generator.uniform(-1e6, 1e6, 4000)
    for c in ("0.1", "10", "1e-9", "123456.7"):
        a = x + generator.choice([-1.0, 1.0], len(x)) * float(c)
        for _ in range(3):
            text = f"ABS(l_d - r_d) <= {c}"
            table = pa.table({"l_d": x, "r_d": a})
            truth = evaluate(bound(text), table).to_numpy(zero_copy_only=False)
            assert truth.any()
            (band,) = intervals(text)
            assert passed(band, table)[truth].all()
            a = np.nextafter(a, x)


def bound(text: str) -> Expr:
    return bind_predicate(sqlglot.parse_one(text, dialect="spark"), TYPES, "ON")


def is_true(text: str, table: pa.Table) -> bool:
    try:
        return bool(evaluate(bound(text), table)[0].as_py())
    except TaskError:
        return False


def passes(interval: PairInterval, table: pa.Table) -> bool:
    try:
        return bool(passed(interval, table)[0])
    except TaskError:  # an overflow, which the row would also meet as a pair
        return True


def passed(interval: PairInterval, table: pa.Table) -> np.ndarray[Any, Any]:
    """Which rows of a table of pairs pass, as the operator would test them."""
    if interval.kind == EQUAL:
        pairs = zip(
            evaluate(interval.left_value, table).to_pylist(),
            evaluate(interval.right_value, table).to_pylist(),
            strict=True,
        )
        return np.array([a is not None and (a == b or (a != a and b != b)) for a, b in pairs])
    left, right = (doubles(v, table) for v in (interval.left_value, interval.right_value))
    result = ~np.isnan(left) & ~np.isnan(right)
    for value, low, high in (
        (left, interval.right_low, interval.right_high),
        (right, interval.left_low, interval.left_high),
    ):
        if low is not None:
            result &= doubles(low, table) <= value
        if high is not None:
            result &= value <= doubles(high, table)
    return result


def doubles(expr: Expr, table: pa.Table) -> np.ndarray[Any, Any]:
    assert expr.type == pa.float64()
    array = evaluate(expr, table)
    values = array.to_numpy(zero_copy_only=False).astype(float)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    assert not np.isnan(values[valid]).any(), describe(expr)
    return values
