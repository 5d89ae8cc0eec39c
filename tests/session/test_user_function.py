"""Functions of the user's own in queries: in every place, and what is told when they fail."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

import tidegate as tg
from tidegate import col, left, right
from tidegate.plan.compatibility.change import shown
from tidegate.plan.lowering.lower import lower
from tidegate.schema import TIME
from tidegate.sink.memory import MemorySink


@tg.function(returns="DOUBLE")
def tax(fare: pa.Array, share: pa.Array | None = None) -> pa.Array:
    """A share of a fare."""
    if pc.any(pc.less(fare, 0)).as_py():
        raise ValueError("a negative fare")
    return pc.multiply(fare, 0.5 if share is None else share)


@tg.function(returns=pa.bool_(), name="is_near", takes=("DOUBLE", "DOUBLE"))
def near(one: pa.Array, other: pa.Array) -> pa.Array:
    assert one.type == other.type == pa.float64()
    return pc.less_equal(pc.abs(pc.subtract(one, other)), 1)


@tg.function(returns="INT")
def wrong(kind: pa.Array) -> Any:
    values = {"short": pa.array([1]), "text": pa.array(["x"] * len(kind)), "list": [1] * len(kind)}
    return values[kind[0].as_py()]


def rides(*fares: float) -> tuple[tg.Session, tg.Stream]:
    """A ride a second, of two routes in turn."""
    session = tg.Session(master="none")
    table = pa.table(
        {
            "ts": pa.array([i * 1_000_000 for i in range(len(fares))], pa.int64()).cast(TIME),
            "route": ["ab"[i % 2] for i in range(len(fares))],
            "fare": pa.array(fares, pa.float64()),
        }
    )
    source = tg.MemorySource(table, time="ts")
    source.end()
    return session, session.stream(source, time="ts", name="rides")


def rows(stream: tg.Stream, **options: Any) -> list[dict[str, Any]]:
    sink = MemorySink()
    stream.start(sink=sink, **options).wait()
    times = ("ts", "window_start", "window_end")
    return [{n: v for n, v in r.items() if n not in times} for r in sink.table().to_pylist()]


def test_in_every_place_of_a_query() -> None:
    session, stream = rides(2.0, 4.0, 6.0, 8.0, 10.0)
    query = session.sql(
        "SELECT route, SUM(TAX(fare)) AS part, Tax(SUM(fare), 0.25) AS whole, COUNT(*) AS n "
        "FROM rides [RANGE 10 SECONDS] WHERE tax(fare) > 1 GROUP BY route "
        "HAVING tax(SUM(fare)) > 1 ORDER BY tax(SUM(fare)) DESC",
        rides=stream,
    )
    assert rows(query) == [
        {"route": "a", "part": 8.0, "whole": 4.0, "n": 2},
        {"route": "b", "part": 6.0, "whole": 3.0, "n": 2},
    ]
    assert (
        "functions\n  tax: tests.session.test_user_function.tax in Python, returns double\n"
        in query.explain()
    )


def test_python_and_sql_are_one_query() -> None:
    session, stream = rides(1.0, 3.0)
    written = session.sql("SELECT tax(fare) AS t FROM rides WHERE tax(fare) > 1", rides=stream)
    made = stream.where(tax(col("fare")) > 1).select(t=tax("fare"))
    assert rows(made) == rows(written) == [{"t": 1.5}]
    assert lower(made.node).fingerprint == lower(written.node).fingerprint


def test_a_predicate_of_a_join() -> None:
    session, stream = rides(1.0, 1.5, 3.0, 9.0)
    pairs = stream.join(stream, within="1 minute", on=near(left.fare, right.fare))
    assert len(rows(pairs.select(x=left.fare, y=right.fare))) == 6
    written = session.sql(
        "SELECT l.fare AS x, r.fare AS y FROM rides l [RANGE 1 MINUTE] JOIN rides r "
        "[RANGE 1 MINUTE] ON l.route = r.route AND is_near(l.fare, r.fare * 1) "
        "WHERE tax(l.fare) > 1",
        rides=stream,
    )
    assert rows(written) == [{"x": 3.0, "y": 3.0}, {"x": 9.0, "y": 9.0}]
    assert "is_near: tests.session.test_user_function.near" in written.explain()


def test_guards_hold_rows_back_from_it() -> None:
    session, stream = rides(-1.0, 4.0)
    guarded = "SELECT CASE WHEN fare > 0 THEN tax(fare) END AS t FROM rides"
    assert rows(session.sql(guarded, rides=stream)) == [{"t": None}, {"t": 2.0}]


@pytest.mark.parametrize(
    ("select", "told"),
    [
        (
            "tax(fare * 2)",
            "expression TAX(fare * 2.0): the function tax ({file}:{tax}) must not raise; got "
            "ValueError: a negative fare, for -6.0.",
        ),
        (
            "wrong(CASE WHEN fare < 99 THEN 'short' END)",
            "the function wrong ({file}:{wrong}) must return a value for each of 3 rows; got 1.",
        ),
        (
            "wrong(CASE WHEN fare < 99 THEN 'text' END)",
            "must return INT; got an array of string (Failed to parse string: 'x' as a scalar of "
            "type int32). Cast it, or declare another type with returns=.",
        ),
        (
            "wrong(CASE WHEN fare < 99 THEN 'list' END)",
            "must return a pyarrow array; got list. Wrap it with pa.array(...).",
        ),
    ],
)
def test_what_goes_wrong_is_told_in_a_line(select: str, told: str) -> None:
    session, stream = rides(1.0, 5.0, -3.0)
    query = session.sql(f"SELECT {select} AS t FROM rides WHERE fare < 99", rides=stream)
    with pytest.raises(tg.TaskError) as failed:
        rows(query)
    lines = {f.name: f.call.__code__.co_firstlineno for f in (tax, wrong)}
    assert told.format(file=__file__, **lines) in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT tax() AS t FROM rides", "TAX must have 1 to 2 argument(s); got 0"),
        ("SELECT tax(1, 2, 3) AS t FROM rides", "TAX must have 1 to 2 argument(s); got 3"),
        ("SELECT taxx(fare) AS t FROM rides", "Did you mean tax?"),
    ],
)
def test_mistakes_in_calls(query: str, told: str) -> None:
    session, stream = rides(1.0)
    with pytest.raises(tg.QueryError) as refused:
        rows(session.sql(query, rides=stream))
    assert told in str(refused.value)


def test_mistakes_in_declarations() -> None:
    def other(x: pa.Array) -> pa.Array:
        return x

    for options, told in [
        ({}, "function other: must have the type that it returns"),
        ({"returns": "MONEY?"}, "function other: a type must be one of SQL; got MONEY?"),
        ({"returns": "INT", "name": "abs"}, "must be free; got abs, a function of SQL"),
        ({"returns": "INT", "name": "rand"}, "must be free; got rand, a function of SQL"),
        ({"returns": "INT", "name": "two words"}, "must be a word"),
        (
            {"returns": "INT", "name": "tax"},
            "a name must stand for one function; got tests.session",
        ),
        ({"returns": "INT", "takes": ("INT", "INT")}, "takes= must have 1 types"),
    ]:
        with pytest.raises(tg.QueryError) as refused:
            tg.function(**options)(other)
        assert told in str(refused.value)
    with pytest.raises(tg.QueryError, match="must take at least one array"):
        tg.function(returns="INT", name="nothing")(lambda: pa.array([1]))


def test_it_is_still_a_function_of_arrays() -> None:
    assert tax(pa.array([2.0])).to_pylist() == [1.0]
    assert tax.__doc__ == "A share of a fare."


def test_it_travels_by_name_or_by_value() -> None:
    assert pickle.loads(pickle.dumps(tax)) is tax
    local = tg.function(returns="INT", name="local_one")(lambda x: pc.add(x, 1))
    other = cloudpickle.loads(cloudpickle.dumps(local))
    assert other == local
    assert other.call(pa.array([1])).to_pylist() == [2]


def test_its_place_in_a_program_is_part_of_what_a_query_means() -> None:
    session, stream = rides(*map(float, range(1, 30)))
    text = "SELECT tax(SUM(fare)) AS t FROM rides [RANGE 10 SECONDS] WHERE tax(fare) > 0"
    query = lower(session.sql(text, rides=stream).node)
    assert query.recorded is not None
    lines, place = query.recorded.subqueries[0].lines, f"of {__name__}.tax"
    assert [shown(line) for line in lines] == [
        "from rides",
        f"where TAX(fare, {place}) > 0",
        "window RANGE 10 seconds",
        f"select TAX(SUM(fare), {place}) as t",
    ]
