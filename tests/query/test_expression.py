from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import QueryError
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.binder import bind
from tidegate.query.expression import Expression, call, col, left, lit, right, to_node
from tidegate.schema import TIME

a, b = col("a"), col("b")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (a + 1 > 3, "(`a` + 1) > 3"),
        ((a - (b - 1)) * 2, "(`a` - (`b` - 1)) * 2"),
        (1 - a, "1 - `a`"),
        (2 / a % 3, "(2 / `a`) % 3"),
        (-(a + 1), "-(`a` + 1)"),
        (a * -2, "`a` * -2"),
        (a**2, "POWER(`a`, 2)"),
        (~(a > 1) & (b == 2), "(NOT (`a` > 1)) AND (`b` = 2)"),
        ((a > 1) | (b != 2) & (a <= 3), "(`a` > 1) OR ((`b` <> 2) AND (`a` <= 3))"),
        (abs(left.x - right["y z"]) <= 10, "ABS(left.`x` - right.`y z`) <= 10"),
        (a.is_null() & b.is_not_null(), "(`a` IS NULL) AND (NOT `b` IS NULL)"),
        ((a > 1).is_null(), "(`a` > 1) IS NULL"),
        (a.isin(1, 2), "`a` IN (1, 2)"),
        (a.isin({3, 1}), "`a` IN (1, 3)"),
        (a.between(1, b + 1), "`a` BETWEEN 1 AND (`b` + 1)"),
        (a.eq_null_safe(None), "`a` IS NOT DISTINCT FROM NULL"),
        (a == "it's", "`a` = 'it\\'s'"),
        (a.like("x%"), "`a` LIKE 'x%'"),
        (a.startswith("x"), "STARTSWITH(`a`, 'x')"),
        (a.contains("x") | a.endswith("y"), "CONTAINS(`a`, 'x') OR ENDSWITH(`a`, 'y')"),
        (a.cast("decimal(10,2)").alias("x"), "CAST(`a` AS DECIMAL(10, 2)) AS `x`"),
        (a.alias("x") + 1, "`a` + 1"),
        (call("date_trunc", lit("hour"), "ts"), "DATE_TRUNC('HOUR', `ts`)"),
        (call("upper", "name"), "UPPER(`name`)"),
        (call("if", a > 1, 1, None), "IF(`a` > 1, 1, NULL)"),
        (a * 0.5, "`a` * 0.5e0"),
        (a * Decimal("1.50"), "`a` * 1.50"),
        (a > datetime(2020, 1, 2, 3, 4, 5), "`a` > CAST('2020-01-02 03:04:05' AS TIMESTAMP)"),
        (a > date(2020, 1, 2), "`a` > CAST('2020-01-02' AS DATE)"),
        (a + timedelta(minutes=5), "`a` + INTERVAL '300000000' MICROSECONDS"),
        (True & (a > 1), "TRUE AND (`a` > 1)"),
        (a == np.int64(3), "`a` = 3"),
    ],
)
def test_expressions_are_the_trees_of_their_text(expression: Expression, text: str) -> None:
    assert expression.node.sql("spark") == text
    assert sqlglot.parse_one(text, read="spark").sql("spark") == text


@given(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text() | st.dates() | st.datetimes()
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-9999, max_value=9999, places=4)
)  # fmt: skip
def test_constants_keep_their_value(value: object) -> None:
    rows = pa.table({"n": [1]})
    got = evaluate(bind(lit(value).node, {}, "test"), rows)
    wanted = value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
    assert got.to_pylist() == [wanted]
    again = sqlglot.parse_one(lit(value).node.sql("spark"), read="spark")
    assert evaluate(bind(again, {}, "test"), rows).to_pylist() == [wanted]


def test_times_with_a_zone_are_moved_to_utc() -> None:
    moment = datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    result = evaluate(bind(lit(moment).node, {}, "test"), pa.table({"n": [1]}))
    assert result.type == TIME
    assert result.to_pylist() == [datetime(2019, 12, 31, 23, tzinfo=UTC)]


@pytest.mark.parametrize("use", [bool, lambda e: e and e, lambda e: 1 < e < 3, lambda e: not e])
def test_a_truth_value_is_refused(use: object) -> None:
    with pytest.raises(QueryError, match=r"no truth value .* Use & for and"):
        use(a > 1)  # type: ignore[operator]


def test_other_misuse_is_refused() -> None:
    with pytest.raises(QueryError, match="not a list"):
        list(a)
    with pytest.raises(TypeError):
        hash(a)
    with pytest.raises(QueryError, match="a constant must be"):
        a + object()
    with pytest.raises(QueryError, match="at least one value"):
        a.isin()
    with pytest.raises(QueryError, match="a function's name must be a word"):
        call("drop table")
    with pytest.raises(QueryError, match="a column's name"):
        col("")


def test_building_leaves_the_parts_as_they_were() -> None:
    part = a + 1
    whole = (part > 2) & (part < 5)
    assert part.node.sql("spark") == "`a` + 1"
    assert whole.node.sql("spark") == "((`a` + 1) > 2) AND ((`a` + 1) < 5)"


def test_a_string_is_a_column_where_an_expression_is_wanted() -> None:
    assert to_node("x y").sql("spark") == "`x y`"
    assert to_node(a).sql("spark") == "`a`"
    assert to_node(3).sql("spark") == "3"
    assert repr(a + 1) == "Expression(a + 1)"
