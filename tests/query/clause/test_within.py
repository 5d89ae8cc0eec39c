"""Error bounds put on queries: the columns that they add, and what cannot have one."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
import pytest

import tidegate as tg
from tests.operate.aggregate.mean import MeanAlone
from tests.query.test_stream import rides
from tidegate.errors import QueryError
from tidegate.query.stream import Stream

HOUR = rides.window("1 hour")


class Total(tg.Aggregator):
    """A sum, of which a sample says little."""

    state: ClassVar = {"total": pa.int64()}
    result = pa.int64()


class Name(Total):
    """A result that is no number."""

    result = pa.string()
    mean_like = True


def test_each_aggregate_is_followed_by_its_interval() -> None:
    fares = HOUR.group_by("route").agg(fare=tg.mean("fare"), n=tg.count()).within(error=0.1)
    assert fares.columns[2:] == (
        *("route", "fare", "fare_low", "fare_high", "n", "n_low", "n_high", "exact"),
    )
    types = [fares.schema.field(name).type for name in ("fare_low", "n_high", "exact")]
    assert types == [pa.float64(), pa.int64(), pa.bool_()]


def test_what_follows_the_aggregate_passes_them_on() -> None:
    fares = HOUR.group_by("route").agg(fare=tg.mean("fare"), n=tg.count())
    chosen = fares.where(tg.col("n") > 3).select("fare", r="route").top(3, by="fare")
    bounded = chosen.within(error=0.1, confidence=0.9, budget=100, metric="rms")
    assert bounded.columns[2:] == ("fare", "fare_low", "fare_high", "r", "exact")
    wide = bounded.where(tg.col("fare_high") > 2 * tg.col("fare_low")).select("r", "exact")
    assert wide.columns[2:] == ("r", "exact")


MISTAKES: dict[str, tuple[Stream, str]] = {
    "distinct": (HOUR.agg(n=tg.count_distinct("fare")), "does not hold the values that are rare"),
    "a sketch": (
        HOUR.agg(n=tg.approx_count_distinct("fare")),
        "it is estimated from a sketch, whose error is its own parameter; got",
    ),
    "tuples": (rides.window(rows=5).agg(n=tg.count()), "is for windows of time; those of tuples"),
    "no aggregate": (rides, "is for an aggregate; got a query without one"),
    "keys alone": (HOUR.group_by("route").agg(), "is for aggregates; got a query that has keys"),
    "twice": (HOUR.agg(n=tg.count()).within(error=0.2), "an aggregate has one error bound; got al"),
    "a sum of one's own": (HOUR.agg(t=tg.aggregate(Total(), "fare")), "Write mean_like = True in"),
    "no number": (HOUR.agg(t=tg.aggregate(Name(), "fare")), "needs a number as the result of agg"),
    "a name that is taken": (
        HOUR.agg(n=tg.count(), n_low=tg.count()),
        "adds a column n_low, so no other may have this name; got a column n_low",
    ),
    "computed": (
        HOUR.agg(s=tg.sum("fare"), n=tg.count()).select(mean=tg.col("s") / tg.col("n")),
        "each column must be a key or one aggregate, because the error of what is computed from",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_bounded_is_told(mistake: str) -> None:
    stream, message = MISTAKES[mistake]
    with pytest.raises(QueryError) as caught:
        stream.within(error=0.1)
    assert message in str(caught.value)


GROUPS = HOUR.group_by("route")
UNBALANCED: dict[str, tuple[Stream, str]] = {
    "no groups": (HOUR.agg(m=tg.median("fare")), "is for groups, of which the largest are trimm"),
    "distinct": (GROUPS.agg(n=tg.count_distinct("fare")), "does not hold the values that are rar"),
    "tuples": (
        rides.window(rows=5).group_by("route").agg(n=tg.count()),
        "is for windows of time; those of tuples",
    ),
    "no aggregate": (rides, "is for an aggregate; got a query without one"),
    "a join": (
        rides.join(rides, within="1 minute", on=tg.left.fare == tg.right.fare),
        "is for an aggregate; got a query without one",
    ),
    "also within": (
        GROUPS.agg(n=tg.count()).within(error=0.2),
        "an aggregate has one error bound; got also ERROR 20 PERCENT",
    ),
    "twice": (
        GROUPS.agg(n=tg.count()).balance(error=0.2),
        "an aggregate has one error bound; got also BALANCE ERROR 20 PERCENT",
    ),
    "sheds": (
        GROUPS.agg(n=tg.count()).shed(0.9),
        "an aggregate sheds or has an error bound, because no bound holds for what is shed; got "
        "also SHED 90 PERCENT BY CONCEPT. Leave one of them out.",
    ),
    "a sum of one's own": (GROUPS.agg(t=tg.aggregate(Total(), "fare")), "Write mean_like = True"),
}


@pytest.mark.parametrize("mistake", UNBALANCED)
def test_what_cannot_be_balanced_is_told(mistake: str) -> None:
    stream, message = UNBALANCED[mistake]
    with pytest.raises(QueryError) as caught:
        stream.balance(error=0.1)
    assert message in str(caught.value)


def test_what_is_balanced_does_not_shed() -> None:
    with pytest.raises(QueryError, match="got also BALANCE ERROR 10 PERCENT CONFIDENCE 95"):
        GROUPS.agg(n=tg.count()).balance(error=0.1).shed(0.9)


def test_balanced_aggregates_are_followed_by_their_intervals() -> None:
    fares = GROUPS.agg(fare=tg.median("fare"), n=tg.count()).where(tg.col("n") > 3)
    assert fares.balance(error=0.1, confidence=0.9).columns[2:] == (
        *("route", "fare", "fare_low", "fare_high", "n", "n_low", "n_high", "exact"),
    )


def test_arguments_are_told() -> None:
    counts = HOUR.agg(n=tg.count())
    with pytest.raises(QueryError, match=r"the budget must be at least 30 rows; got 29\. Write"):
        counts.within(error=0.1, budget=29)
    with pytest.raises(QueryError, match=r"the budget must be a whole number of rows; got 99\.5"):
        counts.within(error=0.1, budget=99.5)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="the metric of groups must be max, mean or rms; got 'l2'"):
        counts.within(error=0.1, metric="l2")
    with pytest.raises(QueryError, match="the confidence must be between 0 and 100 percent; got 1"):
        counts.within(error=0.1, confidence=1)
    with pytest.raises(QueryError, match="the error must be a number; got 'ten'"):
        counts.within(error="ten")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="WITH BALANCE: the error must be between 0 and 100 perce"):
        counts.balance(error=0)
    with pytest.raises(QueryError, match="needs a relative error, or an absolute one; got neither"):
        counts.within()
    with pytest.raises(QueryError, match="needs a relative error, or an absolute one; got both"):
        counts.within(error=0.1, absolute=3)
    for size in (0, -1, float("inf"), True, "much"):
        with pytest.raises(QueryError, match="an absolute error must be a number above 0; got"):
            counts.within(absolute=size)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="WITH BALANCE: TRIM must be COSTLY or ALL; got 'means'"):
        GROUPS.agg(n=tg.count()).balance(error=0.1, trim="means")
    with pytest.raises(QueryError, match="an absolute error needs exact answers to fall back on"):
        HOUR.agg(t=tg.aggregate(MeanAlone(), "fare")).within(absolute=3)
