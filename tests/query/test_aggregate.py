"""Aggregate calls as Python makes them: texts, argument types, mistakes."""

from __future__ import annotations

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
    with pytest.raises(QueryError, match="the kind must be known; got mode"):
        agg.AggregateCall("mode")
    with pytest.raises(QueryError, match="sum: takes one argument; got 0"):
        agg.AggregateCall("sum")
    with pytest.raises(QueryError, match="a user aggregate needs its Aggregator"):
        agg.AggregateCall("user")


def test_text_is_read_as_numbers_where_numbers_are_wanted() -> None:
    (argument,) = agg.sum_("x").coerced([pa.string()]).arguments
    assert argument.sql("spark") == "CAST(`x` AS DOUBLE)"
    assert agg.max_("x").coerced([pa.string()]) == agg.max_("x")
    assert agg.count("x").coerced([pa.list_(pa.int8())]) == agg.count("x")


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
            "max(`x`): the argument must have an order; got list<item: int64>.",
        ),
    ],
)
def test_arguments_of_the_wrong_type(
    call: agg.AggregateCall, type_: pa.DataType, message: str
) -> None:
    with pytest.raises(QueryError) as caught:
        call.coerced([type_])
    assert str(caught.value) == message
