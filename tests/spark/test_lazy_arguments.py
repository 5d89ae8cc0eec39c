"""Every function with an argument that fails, in each place: it fails on the rows Spark fails on.

A row is a table of its own, so that which rows fail is seen one by one. The columns end in what a
row has them for: the first row has values, the second NULLs, the third NaN, FALSE and zero.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.spark.both_engines import FAILS, by_kernels, by_spark, problem
from tidegate.operate.kernels.expression.condition import order_of
from tidegate.operate.kernels.expression.expression import OPS
from tidegate.query.types.function import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
COLUMNS: dict[str, tuple[str, pa.DataType, tuple[object, object, object]]] = {
    "I": ("INT", pa.int32(), (1, None, 0)),
    "D": ("DOUBLE", pa.float64(), (1.5, None, NAN)),
    "S": ("STRING", pa.string(), ("a", None, "")),
    "B": ("BOOLEAN", pa.bool_(), (True, None, False)),
    "E": ("DATE", pa.date32(), (date(2024, 2, 29), None, date(1970, 1, 1))),
    "T": (
        "TIMESTAMP",
        pa.timestamp("us", "UTC"),
        (datetime(2024, 2, 29, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC)),
    ),
}
"""By the letter of a hole: the type in SQL and in Arrow, and the values of the rows."""

ROWS = [
    pa.table(
        {
            "ts": pa.array([0], pa.int64()).cast(pa.timestamp("us", "UTC")),
            **{
                name.lower(): pa.array([values[row]], type_)
                for name, (_, type_, values) in COLUMNS.items()
            },
            "bad": pa.array(["bad"]),
        }
    )
    for row in range(3)
]

OF_ONE = {
    "D": "sqrt cbrt exp expm1 ln log10 log1p sin cos tan cot asin acos atan sinh cosh tanh radians"
    " degrees sign rint abs negative positive log log2 floor ceil round isnan",
    "S": "upper lower length trim btrim ltrim rtrim isnull isnotnull bigint smallint tinyint",
    "T": "year quarter month weekofyear day dayofyear dayofweek weekday hour minute second"
    " unix_micros unix_millis unix_seconds",
    "I": "timestamp_micros timestamp_millis timestamp_seconds decimal",
}
CALLS = {
    **{name: [f"{name}({{{of}}})"] for of, names in OF_ONE.items() for name in names.split()},
    "log": ["log({D}, {D})"],
    "power": ["power({D}, {I})"],
    "atan2": ["atan2({D}, {D})"],
    "hypot": ["hypot({D}, {D})"],
    "pi": ["pi()"],
    "e": ["e()"],
    "round": ["round({D}, 1)"],
    "mod": ["mod({I}, {I})"],
    "pmod": ["pmod({I}, {I})"],
    "shiftleft": ["shiftleft({I}, {I})"],
    "shiftright": ["shiftright({I}, {I})"],
    "substring": ["substring({S}, 1, 2)"],
    "left": ["left({S}, 1)"],
    "right": ["right({S}, 1)"],
    "concat": ["concat({S}, {S}, {S})", "({S} || {S})"],
    "replace": ["replace({S}, 'a', 'b')"],
    "split": ["split({S}, 'a')"],
    "startswith": ["startswith({S}, 'a')"],
    "endswith": ["endswith({S}, 'a')"],
    "contains": ["contains({S}, 'a')"],
    "extract(second)": ["extract(SECOND FROM {T})"],
    "date_trunc": ["date_trunc('hour', {T})"],
    "trunc": ["trunc({E}, 'month')"],
    "date_add": ["date_add({E}, {I})", "date_sub({E}, {I})", "({E} + {I})"],
    "datediff": ["datediff({E}, {E})"],
    "add_months": ["add_months({E}, 1)"],
    "greatest": ["greatest({I}, {I}, {I})"],
    "least": ["least({D}, {D})"],
    "coalesce": ["coalesce({S}, {S}, {S})", "nvl({I}, {I})", "ifnull({D}, {D})"],
    "nullif": ["nullif({I}, {I})"],
    "nvl2": ["nvl2({S}, {I}, {I})", "nvl2({D}, {S}, {S})"],
    "if": ["if({B}, {I}, {I})", "if({B}, if({B}, {I}, {I}), nvl2({S}, {I}, {I}))"],
    "nanvl": ["nanvl({D}, {D})", "nanvl({D}, nanvl({D}, {D}))"],
    "decode": ["decode({I}, 1, {S}, {I}, {S}, {S})"],
}
"""How each function is called, by its name; a letter in braces is an argument of that type."""

OPERATORS = [
    *(f"({{I}} {sign} {{I}})" for sign in "+ - * / % div & | ^ = <> < <= > >= <=>".split()),
    "(-{I})",
    "(~{I})",
    "({B} AND {B})",
    "({B} OR {B})",
    "(NOT ({B} AND {B}) OR {B})",
    "({I} IN (1, {I}, 2))",
    "({I} IN ({I}, 1, 0))",
    "({I} NOT IN ({I}, {I}))",
    "({I} BETWEEN {I} AND {I})",
    "({S} LIKE 'a%')",
    "({S} IS NULL)",
    "({B} IS TRUE)",
    "({T} - {T} > INTERVAL 1 DAY)",
    "CASE WHEN {B} THEN {I} END",
    "CASE WHEN {B} THEN {I} WHEN {B} THEN {I} ELSE {I} END",
    "CASE {I} WHEN {I} THEN {S} WHEN 0 THEN {S} ELSE {S} END",
    "TRY_CAST({S} AS INT)",
    "coalesce(nullif({I}, {I}), if({B}, {I}, {I}) / {I})",
    "(if({B}, {I}, {I}) + nanvl({D}, {D}))",
]
ALL = [*chain.from_iterable(CALLS.values()), *OPERATORS]
CHOOSES = re.compile(r"AND|OR|IN|CASE|coalesce|nvl|ifnull|nullif|if\(|decode")
IDS = ["values", "nulls", "nan, false and zero"]
HOLE = re.compile(r"\{(\w)\}")


def with_failing(call: str) -> list[str]:
    """The call with every argument a column, but one that always fails, each in its turn."""
    return [_filled(call, failing) for failing in range(len(HOLE.findall(call)))]


def _filled(call: str, failing: int) -> str:
    places = iter(range(call.count("{")))

    def fill(hole: re.Match[str]) -> str:
        letter = hole[1]
        if next(places) != failing:
            return letter.lower()
        if letter == "S":  # every text can be one
            return "CAST(CAST(bad AS INT) AS STRING)"
        return f"CAST(bad AS {COLUMNS[letter][0]})"

    return HOLE.sub(fill, call)


def test_every_function_is_here() -> None:
    assert set(CALLS) == set(FUNCTIONS)


def test_the_operations_that_choose_are_declared_to() -> None:
    """A kernel that chooses without a declaration would have all its arguments evaluated."""
    assert {op for op in OPS if order_of(op).guards} == {"case", "coalesce", "nanvl", "and", "or"}


@pytest.mark.parametrize("row", range(3), ids=IDS)
def test_a_single_argument_is_always_evaluated(row: int) -> None:
    texts = [text for call in ALL for text in with_failing(call) if len(HOLE.findall(call)) == 1]
    assert len(texts) > 50
    ours = by_kernels(ROWS[row], texts)
    assert [text for text in texts if ours[text] != FAILS] == []


@pytest.mark.parametrize("row", range(3), ids=IDS)
def test_arguments_are_evaluated_where_spark_does(row: int, spark: SparkSession) -> None:
    texts = [text for call in ALL for text in with_failing(call) if len(HOLE.findall(call)) > 1]
    assert len(texts) > 100
    rows = ROWS[row]
    ours = by_kernels(rows, texts)
    theirs = by_spark(spark, rows, [text for text in texts if ours[text] != FAILS])
    for text in (text for text in texts if ours[text] == FAILS):
        if row > 0 or CHOOSES.search(text):  # of values alone the others evaluate all arguments
            theirs |= by_spark(spark, rows, [text])
    wrong = {text: problem(spark, rows, text, ours[text], theirs[text]) for text in theirs}
    assert {text: found for text, found in wrong.items() if found is not None} == {}
    assert FAILS in ours.values()
