from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import expression as oracle
from tidegate.errors import TaskError
from tidegate.expression.tree import (
    SAFE,
    SAFE_ON_FLOATS,
    Call,
    Column,
    Literal,
)
from tidegate.operate.kernels.expression.expression import OPS, evaluate
from tidegate.query.binder import bind

TYPES = {
    "i": pa.int32(),
    "j": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "e": pa.float64(),
    "s": pa.string(),
    "t": pa.string(),
    "b": pa.bool_(),
}
INTEGERS = st.none() | st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31), 46341])
LONGS = st.none() | st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
DOUBLES = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.5, 1e300, math.nan, math.inf, 3.0, 2e9])
TEXTS = st.none() | st.text("aB%_ é\n", max_size=4)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": INTEGERS,
            "j": INTEGERS,
            "l": LONGS,
            "d": DOUBLES,
            "e": DOUBLES,
            "s": TEXTS,
            "t": TEXTS,
            "b": st.none() | st.booleans(),
        }
    ),
    max_size=6,
)


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    """The text of a random expression whose type is of a kind."""

    def sub(kind: str) -> str:
        return str(draw(expressions(kind, depth - 1)))

    def pick(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    if depth == 0:
        return pick(*LEAVES[kind])
    shape = pick(*SHAPES[kind])
    parts = iter([sub(letter) for letter in shape if letter in LEAVES])
    return "".join(next(parts) if letter in LEAVES else letter for letter in shape)


LEAVES = {
    "⟨": ("i", "j", "l", "2", "0", "-1", "CAST(NULL AS INT)"),
    "⟪": ("d", "e", "2e0", "0e0"),
    "⟦": ("s", "t", "'a'", "''"),
    "⟮": ("b", "TRUE", "i = j", "d < e"),
}
"""Kinds are brackets, so that a shape can name them: integers, doubles, texts, conditions."""

COMMON = (
    "CASE WHEN ⟮ THEN {0} ELSE {0} END;COALESCE({0}, {0});IF(⟮, {0}, {0});{0};GREATEST({0}, {0})"
)
SHAPES = {
    "⟨": (
        "(⟨ + ⟨);(⟨ - ⟨);(⟨ * ⟨);(⟨ % ⟨);(⟨ DIV ⟨);-(⟨);ABS(⟨);LENGTH(⟦);CAST(⟪ AS INT);"
        "CAST(⟪ AS BIGINT);NULLIF(⟨, ⟨);" + COMMON.format("⟨")
    ).split(";"),
    "⟪": (
        "(⟪ + ⟪);(⟪ - ⟪);(⟪ * ⟪);(⟪ / ⟪);(⟨ / ⟨);(⟪ % ⟪);-(⟪);CAST(⟨ AS DOUBLE);LEAST(⟪, ⟪);"
        + COMMON.format("⟪")
    ).split(";"),
    "⟦": (
        "CONCAT(⟦, ⟦);SUBSTRING(⟦, 2, 2);SUBSTRING(⟦, -2);UPPER(⟦);TRIM(⟦);" + COMMON.format("⟦")
    ).split(";"),
    "⟮": (
        "(⟨ < ⟨);(⟨ = ⟨);(⟪ <= ⟪);(⟪ = ⟪);(⟪ > ⟪);(⟪ >= 1.5e0);(⟪ <> ⟪);(⟦ < ⟦);(⟦ = ⟦);"
        "(⟮ AND ⟮);(⟮ OR ⟮);(NOT ⟮);(⟮ IS NULL);(⟨ BETWEEN ⟨ AND ⟨);(⟨ IN (1, 2, NULL));"
        "(⟪ IN (1.5e0, 0e0));(⟪ <=> ⟪);(⟨ <=> ⟨);(⟦ LIKE 'a%');(⟦ LIKE '%a%');(⟦ LIKE '_B%_');"
        "STARTSWITH(⟦, 'a');(⟦ IN ('a', ''));" + COMMON.format("⟮")
    ).split(";"),
}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({n: pa.array([r[n] for r in rows], t) for n, t in TYPES.items()})


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right


@given(st.sampled_from(sorted(LEAVES)).flatmap(expressions), ROWS)
def test_kernels_agree_with_the_row_at_a_time_twin(text: str, rows: list[dict[str, Any]]) -> None:
    expr = bind(sqlglot.parse_one(text, read="spark"), TYPES, "test")
    try:
        wanted = [oracle.value(expr, row) for row in rows]
    except oracle.Fails:
        with pytest.raises(TaskError):
            evaluate(expr, table(rows))
        return
    got = evaluate(expr, table(rows))
    assert got.type == expr.type
    assert all(same(a, b) for a, b in zip(got.to_pylist(), wanted, strict=True)), (got, wanted)


@given(st.sampled_from(sorted(LEAVES)).flatmap(expressions), ROWS, st.integers(0, 6))
def test_the_cut_into_chunks_does_not_matter(
    text: str, rows: list[dict[str, Any]], cut: int
) -> None:
    expr = bind(sqlglot.parse_one(text, read="spark"), TYPES, "test")
    whole = table(rows)
    try:
        wanted = evaluate(expr, whole)
    except TaskError:
        return
    chunks = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert evaluate(expr, chunks).equals(wanted) or any(
        isinstance(v, float) and math.isnan(v) for v in wanted.to_pylist()
    )
    assert isinstance(evaluate(expr, chunks), pa.Array)


A, B = Column("a", pa.int64()), Column("b", pa.int64())
RATIO = Call(
    "divide",
    (Call("cast", (A,), pa.float64()), Call("cast", (B,), pa.float64())),
    pa.float64(),
)
NOT_ZERO = Call("ne", (B, Literal(0, pa.int64())), pa.bool_())
PAIRS = pa.table({"a": pa.array([6, 1, None, 8]), "b": pa.array([3, 0, 0, None])})


def test_a_failure_names_the_expression_and_the_values() -> None:
    with pytest.raises(TaskError, match=r"expression a / b: .* got 1.0 and 0.0\. Guard it"):
        evaluate(RATIO, PAIRS)


def test_an_overflow_names_the_first_row_that_overflows() -> None:
    many = pa.table({"a": pa.array([*range(1000), 2**63 - 1, 2**63 - 2])})
    twice = Call("multiply", (A, Literal(2, pa.int64())), pa.int64())
    with pytest.raises(TaskError, match=r"a \* 2: .* got 9223372036854775807 and 2"):
        evaluate(twice, many)


def test_a_guard_keeps_rows_from_the_division() -> None:
    guarded = Call("case", (NOT_ZERO, RATIO, Literal(-1.0, pa.float64())), pa.float64())
    assert evaluate(guarded, PAIRS).to_pylist() == [2.0, -1.0, -1.0, -1.0]
    positive = Call("gt", (RATIO, Literal(0.0, pa.float64())), pa.bool_())
    both = Call("and", (NOT_ZERO, positive), pa.bool_())
    assert evaluate(both, PAIRS).to_pylist() == [True, False, False, None]
    either = Call("or", (Call("not", (NOT_ZERO,), pa.bool_()), positive), pa.bool_())
    assert evaluate(either, PAIRS).to_pylist() == [True, True, True, None]
    first = Call("coalesce", (Literal(0.0, pa.float64()), RATIO), pa.float64())
    assert evaluate(first, PAIRS).to_pylist() == [0.0] * 4


def test_a_constant_fills_the_rows() -> None:
    assert evaluate(Literal("x", pa.string()), PAIRS).to_pylist() == ["x"] * 4
    assert evaluate(Literal(None, pa.int8()), PAIRS).type == pa.int8()
    nothing = Call("divide", (Literal(1.0, pa.float64()), Literal(0.0, pa.float64())), pa.float64())
    assert evaluate(nothing, PAIRS.slice(0, 0)).to_pylist() == []
    with pytest.raises(TaskError, match="must not be zero"):
        evaluate(nothing, PAIRS)


def test_a_struct_field_of_a_null_struct_is_null() -> None:
    type_ = pa.struct([("x", pa.int32())])
    rows = pa.table({"p": pa.array([{"x": 1}, None], type_)})
    field = Call("field", (Column("p", type_), Literal("x", pa.string())), pa.int32())
    assert evaluate(field, rows).to_pylist() == [1, None]


def test_the_safe_operations_exist() -> None:
    assert set(OPS) >= SAFE | SAFE_ON_FLOATS


@pytest.mark.parametrize(
    ("type_", "left", "right", "wanted"),
    [
        (pa.int32(), 2, 2**31 - 1, 2),
        (pa.int32(), -2, 2**31 - 1, 2**31 - 3),
        (pa.int32(), -(2**31), 2**31 - 1, 2**31 - 2),
        (pa.int32(), -7, -(2**31), 2**31 - 7),  # the sum wraps around, as in Java
        (pa.int64(), 2, 2**63 - 1, 2),
        (pa.int64(), -2, 2**63 - 1, 2**63 - 3),
        (pa.int8(), 100, 127, 100),
        (pa.int8(), -7, -128, -7),  # Java adds bytes in 32 bits
        (pa.int32(), -5, -3, -2),
    ],
)
def test_pmod_is_that_of_spark_at_the_ends_of_its_type(
    type_: pa.DataType, left: int, right: int, wanted: int
) -> None:
    pair = pa.array([left], type_), pa.array([right], type_)
    assert OPS["positive_remainder"](type_, *pair).to_pylist() == [wanted]
