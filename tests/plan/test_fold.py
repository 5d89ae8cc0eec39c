from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import sqlglot

from tidegate.expression.tree import Call, Column, Expr, Literal
from tidegate.plan.fold import fold
from tidegate.query.binder import bind
from tidegate.schema import TIME

I32 = pa.int32()


def folded(text: str) -> Expr:
    columns = {"i": I32, "ts": TIME}
    return fold(bind(sqlglot.parse_one(text, read="spark"), columns, "WHERE"))


def test_calls_of_constants_become_their_values() -> None:
    assert folded("SQRT(16) + 1") == Literal(5.0, pa.float64())
    late = folded("ts > CAST(SUBSTRING('on 2020-01-01', 4) AS TIMESTAMP)")
    assert isinstance(late, Call)
    assert late.args[1] == Literal(datetime(2020, 1, 1, tzinfo=UTC), TIME)


def test_a_constant_inside_is_folded_and_the_rest_stays() -> None:
    assert folded("i + LENGTH(SUBSTRING('abcd', 2))") == Call(
        "add", (Column("i", I32), Literal(3, I32)), I32
    )


def test_what_fails_or_chooses_stays() -> None:
    division = folded("SQRT(4) / 0")
    assert isinstance(division, Call)
    assert division.args == (Literal(2.0, pa.float64()), Literal(0.0, pa.float64()))
    choice = folded("COALESCE(NULL, SQRT(4))")
    assert isinstance(choice, Call)
    assert choice.args == (Literal(None, pa.float64()), Literal(2.0, pa.float64()))


def test_a_shared_part_stays_one_object() -> None:
    part = Call("add", (Column("i", I32), Call("length", (Literal("a", pa.string()),), I32)), I32)
    both = fold(Call("eq", (part, part), pa.bool_()))
    assert isinstance(both, Call)
    assert both.args[0] is both.args[1]
    untouched = Call("negate", (Column("i", I32),), I32)
    assert fold(untouched) is untouched
