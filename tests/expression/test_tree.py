from __future__ import annotations

import pickle

import pyarrow as pa

from tidegate.expression.tree import Call, Column, Expr, Literal, columns_of, describe, is_total

A, B = Column("a", pa.int64()), Column("b", pa.int64())
RATIO = Call(
    "divide",
    (Call("cast", (A,), pa.float64()), Call("cast", (B,), pa.float64())),
    pa.float64(),
)
NOT_ZERO = Call("ne", (B, Literal(0, pa.int64())), pa.bool_())


def test_columns_come_in_the_order_of_first_appearance() -> None:
    expr: Expr = Call("case", (Call("gt", (B, A), pa.bool_()), A, B), pa.int64())
    assert columns_of(expr) == ("b", "a")
    assert columns_of(Literal(1, pa.int64())) == ()


def test_trees_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(RATIO)) == RATIO


def test_what_may_fail_is_known() -> None:
    assert not is_total(RATIO)
    assert is_total(NOT_ZERO)
    assert is_total(Call("add", (Literal(1.0, pa.float64()),) * 2, pa.float64()))
    assert not is_total(Call("add", (A, B), pa.int64()))


def test_a_tree_reads_as_it_was_written() -> None:
    assert describe(Call("and", (NOT_ZERO, NOT_ZERO), pa.bool_())) == "(b <> 0) AND (b <> 0)"
    inside = Call("cast", (Call("subtract", (A, A), pa.int64()),), pa.float64())
    assert describe(Call("divide", (inside, inside), pa.float64())) == "(a - a) / (a - a)"
    assert describe(Call("cast", (A,), pa.int8())) == "CAST(a AS tinyint)"
    case = Call("case", (NOT_ZERO, A, Literal(None, pa.int64())), pa.int64())
    assert describe(case) == "CASE WHEN b <> 0 THEN a ELSE NULL END"
