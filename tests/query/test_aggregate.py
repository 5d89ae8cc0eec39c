"""Aggregate calls as Python makes them: texts, argument types, mistakes."""

from __future__ import annotations

from inspect import signature
from typing import ClassVar

import pyarrow as pa
import pytest

from tidegate.errors import QueryError
from tidegate.operate.aggregate.user import Aggregator
from tidegate.query import aggregate as agg
from tidegate.query.expression import col


class Nothing(Aggregator):
    """An aggregate that is only named, never run."""

    state: ClassVar = {"n": pa.int64()}
    result = pa.int64()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (agg.count(), "count(*)"),
        (agg.count("x"), "count(`x`)"),
        (agg.count_distinct("x"), "count(DISTINCT `x`)"),
        (agg.sum_("x"), "sum(`x`)"),
        (agg.mean(col("x") + 1), "mean(`x` + 1)"),
        (agg.avg("x"), "mean(`x`)"),
        (agg.min_("x"), "min(`x`)"),
        (agg.max_("x"), "max(`x`)"),
        (agg.var("x"), "var(`x`)"),
        (agg.stddev("x"), "stddev(`x`)"),
        (agg.median("x"), "quantile(`x`, 0.5)"),
        (agg.quantile("x", 0.9), "quantile(`x`, 0.9)"),
        (agg.first("x"), "first(`x`)"),
        (agg.last("x"), "last(`x`)"),
        (agg.min_by("x", "y"), "min_by(`x`, `y`)"),
        (agg.max_by(col("x") + 1, "y"), "max_by(`x` + 1, `y`)"),
        (agg.corr("x", "y"), "corr(`x`, `y`)"),
        (agg.covar_samp("x", y="y"), "covar_samp(`x`, `y`)"),
        (agg.covar_pop(x="x", y="y"), "covar_pop(`x`, `y`)"),
        (agg.bool_and("x"), "bool_and(`x`)"),
        (agg.bool_or(col("x") > 1), "bool_or(`x` > 1)"),
        (agg.count_if("x"), "count_if(`x`)"),
        (agg.approx_count_distinct("x"), "approx_count_distinct(`x`, 0.05)"),
        (agg.approx_count_distinct("x", 0.01), "approx_count_distinct(`x`, 0.01)"),
        (agg.approx_count_distinct("x", rsd=0.1), "approx_count_distinct(`x`, 0.1)"),
        (agg.percentile_cont("x", 0.9), "quantile(`x`, 0.9)"),
        (
            agg.percentile_cont("x", 0.9, descending=True),
            "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY `x` DESC)",
        ),
        (agg.percentile_disc("x", fraction=0.5), "percentile_disc(`x`, 0.5)"),
        (agg.approx_percentile("x", 0.5), "approx_percentile(`x`, 0.5, 10000)"),
        (agg.mode("x"), "mode(`x`)"),
        (agg.mode("x", descending=True), "MODE() WITHIN GROUP (ORDER BY `x` DESC)"),
        (agg.array_agg("x"), "array_agg(`x`)"),
        (
            agg.array_agg("x", order_by=["y", col("z") + 1], descending=True),
            "array_agg(`x` ORDER BY `y` DESC, `z` + 1 DESC)",
        ),
        (agg.string_agg("x", ", ", order_by="y"), "string_agg(`x`, ', ' ORDER BY `y`)"),
        (agg.collect_set("x"), "collect_set(`x`)"),
    ],
)
def test_calls_say_themselves(call: agg.AggregateCall, text: str) -> None:
    assert str(call) == text


def test_a_user_s_aggregate_takes_any_number_of_arguments() -> None:
    call = agg.aggregate(Nothing(), "x", col("y") * 2)
    assert call.kind == "user"
    assert len(call.arguments) == 2
    assert call.function("a0", ("x0", "x1"), [pa.int64(), pa.int64()]).result == pa.int64()


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_quantile_lies_between_0_and_1(fraction: float) -> None:
    with pytest.raises(QueryError, match="QUANTILE: the fraction must be between 0 and 1; got"):
        agg.quantile("x", fraction)


def test_what_cannot_be_called() -> None:
    with pytest.raises(QueryError, match="the function must be an Aggregator; got 'x'"):
        agg.aggregate("x")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="the kind must be known; got moda"):
        agg.AggregateCall("moda")
    with pytest.raises(QueryError, match="sum: takes one argument; got 0"):
        agg.AggregateCall("sum")
    with pytest.raises(QueryError, match="corr: takes two arguments; got 1"):
        agg.corr("x")
    with pytest.raises(QueryError, match="min_by: takes two arguments; got 3"):
        agg.min_by("x", "y", "z")
    with pytest.raises(QueryError, match="QUANTILE: the fraction must be a number between 0 and 1"):
        agg.quantile("x")
    with pytest.raises(QueryError, match="number between 0 and 1; got 'half'"):
        agg.quantile("x", "half")
    with pytest.raises(QueryError, match=r"the relative standard deviation must be between 0\.001"):
        agg.approx_count_distinct("x", rsd=0)
    with pytest.raises(QueryError, match="ARRAY_AGG: descending needs order_by; got none"):
        agg.array_agg("x", descending=True)
    with pytest.raises(QueryError, match="array_agg: takes of, order_by, descending; got by"):
        agg.array_agg("x", by="y")
    with pytest.raises(QueryError, match="the separator must be a text in quotes; got 1"):
        agg.string_agg("x", 1)
    with pytest.raises(QueryError, match="corr: takes x, y; got z"):
        agg.corr("x", z="y")
    with pytest.raises(QueryError, match="a user aggregate needs its Aggregator"):
        agg.AggregateCall("user")


def test_text_is_read_as_numbers_where_numbers_are_wanted() -> None:
    (argument,) = agg.sum_("x").coerced([pa.string()]).arguments
    assert argument.sql("spark") == "CAST(`x` AS DOUBLE)"
    assert agg.max_("x").coerced([pa.string()]) == agg.max_("x")
    assert agg.count("x").coerced([pa.list_(pa.int8())]) == agg.count("x")
    casts = [
        [a.sql("spark") for a in call.arguments]
        for call in (
            agg.corr("x", "y").coerced([pa.string(), pa.int8()]),
            agg.min_by("x", "y").coerced([pa.null(), pa.null()]),
            agg.bool_or("x").coerced([pa.string()]),
            agg.count_if("x").coerced([pa.null()]),
        )
    ]
    assert casts == [
        ["CAST(`x` AS DOUBLE)", "`y`"],
        ["CAST(`x` AS STRING)", "CAST(`y` AS STRING)"],
        ["CAST(`x` AS BOOLEAN)"],
        ["CAST(`x` AS BOOLEAN)"],
    ]


def test_what_calls_a_function_documents_itself() -> None:
    assert str(signature(agg.corr)).startswith("(x: str |")
    assert list(signature(agg.quantile).parameters) == ["of", "fraction"]
    assert signature(agg.approx_count_distinct).parameters["rsd"].default == 0.05
    assert agg.covar_pop.__doc__ == "The population covariance of two columns."


@pytest.mark.parametrize(
    ("call", "type_", "message"),
    [
        (
            agg.sum_("x"),
            pa.bool_(),
            "sum(`x`): the argument must be a number; got boolean. "
            "CAST it to one, or use COUNT, MIN or MAX.",
        ),
        (
            agg.mean("x"),
            pa.date32(),
            "mean(`x`): the argument must be a number; got date. "
            "CAST it to one, or use COUNT, MIN or MAX.",
        ),
        (
            agg.max_("x"),
            pa.list_(pa.int64()),
            "max(`x`): the argument must have an order; got array<bigint>.",
        ),
    ],
)
def test_arguments_of_the_wrong_type(
    call: agg.AggregateCall, type_: pa.DataType, message: str
) -> None:
    with pytest.raises(QueryError) as caught:
        call.coerced([type_])
    assert str(caught.value) == message
