from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pyarrow as pa
import pytest
import sqlglot

from tidegate.errors import QueryError
from tidegate.expression.tree import Call, Column, Expr, Literal
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.binder import UnknownKernel, bind, bind_predicate
from tidegate.schema import TIME, type_name

COLUMNS = {
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "c": pa.decimal128(10, 2),
    "s": pa.string(),
    "b": pa.bool_(),
    "ts": TIME,
    "dt": pa.date32(),
    "u": pa.uint16(),
    "Mixed Case": pa.int32(),
    "p": pa.struct([("x", pa.int32()), ("q", pa.struct([("z", pa.string())]))]),
    "xs": pa.list_(pa.int32()),
}


def bound(text: str, **options: object) -> Expr:
    return bind(sqlglot.parse_one(text, read="spark"), COLUMNS, "WHERE", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i + 1", "int"),
        ("i + l", "bigint"),
        ("i / 2", "double"),
        ("f + 1", "double"),
        ("f * f", "float"),
        ("i + 0.5", "decimal(12,1)"),
        ("c + 1", "decimal(11,2)"),
        ("c * c", "decimal(21,4)"),
        ("c / 3", "decimal(14,6)"),
        ("c + d", "double"),
        ("s + 1", "bigint"),
        ("s + 1.5", "double"),
        ("0.05", "decimal(2,2)"),
        ("3000000000", "bigint"),
        ("-2147483648", "int"),
        ("1e3", "double"),
        ("u", "int"),
        ("COALESCE(i, 1.5)", "decimal(11,1)"),
        ("CASE WHEN b THEN i ELSE l END", "bigint"),
        ("ts + INTERVAL 1 DAY", "timestamp"),
        ("dt + INTERVAL 1 DAY", "date"),
        ("dt + INTERVAL 1 HOUR", "timestamp"),
        ("ts - ts", "interval"),
        ("`Mixed Case`", "int"),
        ("p.x", "int"),
        ("p.q.z", "string"),
        ("xs", "array<int>"),
        ("NULL", "string"),
        ("LENGTH(s)", "int"),
        ("(i)", "int"),
    ],
)
def test_types_are_those_of_spark(text: str, type_: str) -> None:
    assert type_name(bound(text).type) == type_


def test_names_are_found_exactly_then_in_any_case() -> None:
    assert bound("I") == Column("i", pa.int32())
    node = sqlglot.parse_one("a", read="spark")
    assert bind(node, {"A": pa.int8(), "a": pa.int32()}, "x") == Column("a", pa.int32())
    with pytest.raises(QueryError, match="a name must be clear; got aB, which may be ab or AB"):
        bind(sqlglot.parse_one("aB"), {"ab": pa.int8(), "AB": pa.int8()}, "x")


def test_an_unknown_column_lists_the_near_ones() -> None:
    with pytest.raises(QueryError, match=r"WHERE: the column must exist; got faer\. .*fare"):
        bind(sqlglot.parse_one("faer"), {"fare": pa.int32()}, "WHERE")


def test_constants_are_computed_when_bound() -> None:
    assert bound("1 + 2 * 3") == Literal(7, pa.int32())
    late = bound("ts > '2020-01-01'")
    assert isinstance(late, Call)
    assert late.args[1] == Literal(datetime(2020, 1, 1, tzinfo=UTC), TIME)
    assert isinstance(bound("1 / 0"), Call)
    assert bound("NULL + i") == Call(
        "add", (Literal(None, pa.int32()), Column("i", pa.int32())), pa.int32()
    )


def test_a_constant_that_cannot_be_read_is_found_at_once() -> None:
    with pytest.raises(QueryError, match=r"beside a timestamp must be readable .* got 'yesterday'"):
        bound("ts > 'yesterday'")
    with pytest.raises(QueryError, match=r"beside a bigint .* got 'a'"):
        bound("i IN (1, 'a')")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b + 1", r"arithmetic must be over numbers; got boolean \+ int"),
        ("s + s", "arithmetic must be over numbers"),
        ("b = 1", "must have one type; got boolean and int"),
        ("i AND b", "AND must be boolean; got int"),
        ("NOT i", "NOT must be boolean"),
        ("d DIV 2", "DIV must be over integers"),
        ("SQRT(b)", "must be a number; got boolean"),
        ("YEAR(i)", "the conversion must exist; got int to date"),
        ("HOUR(i)", "must be a date or a time; got int"),
        ("CAST(ts AS BOOLEAN)", "the conversion must exist; got timestamp to boolean"),
        ("CAST(i AS DECIMAL(50, 2))", "s <= p <= 38"),
        ("CASE WHEN b THEN 1 ELSE dt END", "the branches of CASE must have one type"),
        ("SUM(i)", "an aggregate must stand in the select list"),
        ("i IN (SELECT 1)", "SELECT"),
        ("SUM(i) OVER ()", "must not hold a window function"),
        ("RAND()", "the same value whenever a batch is replayed"),
        ("CURRENT_TIMESTAMP()", "the same value whenever a batch is replayed"),
        ("DATE_TRUNC('fortnight', ts)", "the unit to truncate to must be known; got FORTNIGHT"),
        ("TRUNC(ts, 'day')", "got DAY. Use week, month, quarter, year."),
        ("s LIKE 'a!b' ESCAPE '!'", "after the escape"),
        ("i + INTERVAL 1 DAY", "must be added to a date or a timestamp"),
        ("ts + INTERVAL 1 PARSEC", "unit must be known"),
        ("PMOD(i)", r"PMOD must have 2 argument\(s\); got 1"),
        ("p.nothing", "the column must exist; got nothing"),
    ],
)
def test_mistakes_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        bound(text)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(d AS STRING)",
        "CAST(p AS STRING)",
        "CAST(xs AS STRING)",
        "SHA2(s, 256)",
        "s RLIKE 'a'",
        "CAST(i AS INTERVAL DAY)",
        "xs = xs",
    ],
)
def test_what_needs_spark_is_another_error(text: str) -> None:
    with pytest.raises(UnknownKernel):
        bound(text)


def test_an_unknown_function_lists_the_near_ones() -> None:
    with pytest.raises(UnknownKernel) as error:
        bound("SQR(i)")
    assert "SQR needs Spark" in str(error.value)
    assert "Did you mean sqrt?" in str(error.value)
    copy = pickle.loads(pickle.dumps(error.value))
    assert isinstance(copy, UnknownKernel)
    assert str(copy) == str(error.value)


def test_a_predicate_must_be_boolean() -> None:
    def predicate(text: str) -> Expr:
        return bind_predicate(sqlglot.parse_one(text, read="spark"), COLUMNS, "WHERE")

    assert predicate("i > 1").type == pa.bool_()
    assert predicate("NULL") == Literal(None, pa.bool_())
    with pytest.raises(
        QueryError, match=r"WHERE: a condition must be boolean; got i \+ 1 of type int"
    ):
        predicate("i + 1")


def test_long_chains_bind_and_evaluate() -> None:
    text = " OR ".join(f"i = {n}" for n in range(3000))
    rows = pa.table({"i": pa.array([5, 3000, None], pa.int32())})
    assert evaluate(bound(text), rows).to_pylist() == [True, False, None]


def test_unsigned_columns_are_widened() -> None:
    rows = pa.table({"u": pa.array([65535], pa.uint16())})
    assert evaluate(bound("u + 1"), rows).to_pylist() == [65536]
