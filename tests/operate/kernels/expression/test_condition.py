"""Arguments take turns: which rows they are evaluated on, and what that costs."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
import sqlglot

from tests.cost import calls
from tidegate.errors import QueryError, TaskError
from tidegate.expression.tree import CHOICES, Call, Column, Expr
from tidegate.operate.kernels.expression.condition import order_of
from tidegate.operate.kernels.expression.expression import OPS, evaluate
from tidegate.query.binder import bind

ROWS = pa.table(
    {
        "i": pa.array([1, None, 2], pa.int32()),
        "z": pa.array([0, 0, 2], pa.int32()),
        "d": pa.array([1.5, None, float("nan")]),
        "b": pa.array([True, None, False]),
        "s": pa.array(["bad", "bad", "5"]),
        "e": pa.array([0, None, 1], pa.int32()).cast(pa.date32()),
        "w": pa.array([Decimal(1), None, Decimal(2)], pa.decimal128(38, 10)),
    }
)
LONG = pa.int64()
FAILS = "fails"
TYPES = {field.name: field.type for field in ROWS.schema}


def bound(text: str) -> Expr:
    return bind(sqlglot.parse_one(text, dialect="spark"), TYPES, "SELECT")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nanvl(d, CAST(s AS DOUBLE))", [1.5, None, 5.0]),
        ("nvl2(i, 1, CAST(s AS INT))", FAILS),
        ("nvl2(nullif(z, 0), CAST(s AS INT), 1)", [1, 1, 5]),
        ("coalesce(i, z, CAST(s AS INT))", [1, 0, 2]),
        ("b OR i IS NULL OR CAST(s AS INT) = 5", [True, True, True]),
        ("i IN (1, NULL, 2 div z)", [True, None, None]),
        ("i IN (2 div z, 1)", FAILS),
        ("z IN (0, CAST(s AS INT))", [True, True, False]),
        ("i + 1 div nullif(z, 0)", [None, None, 2]),
        ("nullif(z, 0) + CAST(s AS INT)", [None, None, 7]),
        ("CAST(s AS INT) / nullif(z, 0)", [None, None, 2.5]),
        ("pmod(CAST(s AS INT), nullif(z, 0))", [None, None, 1]),
        ("power(nullif(z, 0), CAST(s AS INT))", [None, None, 32.0]),
        ("nullif(z, 0) & CAST(s AS INT)", [None, None, 0]),
        ("shiftleft(nullif(z, 0), CAST(s AS INT))", [None, None, 64]),
        ("greatest(nullif(z, 0), CAST(s AS INT))", FAILS),
        ("nullif(z, 0) <=> CAST(s AS INT)", FAILS),
        ("concat(nullif(s, 'bad'), CAST(4 div z AS STRING))", [None, None, "52"]),
        ("if(b, i, z + 'bad')", FAILS),
        ("if(z = 0, 0, z + '5')", [0, 0, 7]),
        ("if(z >= 0, i, z + 'bad')", [1, None, 2]),
        ("shiftright(w, 1)", [0, None, 1]),
        ("shiftright('8', 1)", [4, 4, 4]),
    ],
)
def test_arguments_are_evaluated_where_they_count(text: str, wanted: object) -> None:
    if wanted == FAILS:
        with pytest.raises(TaskError):
            evaluate(bound(text), ROWS)
    else:
        assert evaluate(bound(text), ROWS).to_pylist() == wanted


@pytest.mark.parametrize(
    "text", ["i + 'bad'", "b OR i = 'bad'", "i IN (1, 'bad')", "nanvl('bad', d)"]
)
def test_a_constant_that_no_branch_hides_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="must be readable as one; got 'bad'"):
        bound(text)


def test_what_chooses_is_declared_to_guard() -> None:
    assert {op for op in OPS if order_of(op).guards} == CHOICES | {"and", "or"}


def test_a_failure_deep_inside_costs_no_more_with_every_level() -> None:
    """Each level has a row that its NULL keeps from the failure, so each level tries again."""

    def cost(levels: int) -> int:
        names = [f"c{level}" for level in range(levels)]
        one = {
            n: [None if row == k else 1 for row in range(levels + 1)] for k, n in enumerate(names)
        }
        rows = pa.table({**one, "zero": [0] * (levels + 1)})
        expr: Expr = Call("int_divide", (Column("c0", LONG), Column("zero", LONG)), LONG)
        for name in names:
            expr = Call("add", (Column(name, LONG), expr), LONG)

        def fail() -> None:
            with pytest.raises(TaskError, match="must not be zero"):
                evaluate(expr, rows)

        return calls(fail)

    assert cost(24) < 6 * cost(12)


@pytest.mark.parametrize(
    ("text", "digits", "wanted"),
    [
        ("-w", "1.1234567890", "-1.1234570000"),
        ("abs(w)", "-1.1234565", "1.1234560000"),
        ("abs(w)", "1.1234567890", "1.1234567890"),
    ],
)
def test_long_decimals_are_negated_as_spark_does(text: str, digits: str, wanted: str) -> None:
    """Spark has 34 digits for it, half even: here 28 before the point."""
    many = "123456789012345678901234567"
    value, result = (Decimal(number.replace("1", f"{many}1", 1)) for number in (digits, wanted))
    rows = pa.table({"w": pa.array([value, Decimal("0.0000000001"), None], pa.decimal128(38, 10))})
    *_, small, none = evaluate(bound(text), rows).to_pylist()
    assert evaluate(bound(text), rows)[0].as_py() == result
    assert (abs(small), none) == (Decimal("0.0000000001"), None)


def test_the_longest_decimal_has_no_negative() -> None:
    longest = Decimal("9999999999999999999999999999.9999999999")
    with pytest.raises(TaskError, match="must fit its type"):
        evaluate(bound("-w"), pa.table({"w": pa.array([longest], pa.decimal128(38, 10))}))
