"""Joins on every kind of predicate, by every method and routing, against DuckDB."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data, predicate
from tests.duckdb.compare import Streamed, by_duckdb, by_tidegate, differences
from tests.seed import seeds

LONG = os.environ.get("TIDEGATE_TEST_MODE") == "long"
SEEDS = 200 if LONG else 16
TIME = data.SCHEMA.field("ts").type
ITEMS = "l.i AS li, r.i AS ri, l.s AS ls, r.f AS rf, l.k + r.k AS k, r.ts AS at"
ON = ("l.k = r.k", "abs(l.f - r.f) <= 400", "l.s < r.s OR l.t")
NAN, INF = float("nan"), float("inf")

WAYS: dict[str, dict[str, Any]] = {
    "as planned": {"instances": 2},
    "in batches": {"instances": 1, "batch_rows": 170},
    "scan": {"method": "scan", "instances": 3},
    "in turn": {
        "routing": "round-robin",
        "instances": 3,
        "batch_rows": 100,
        "switches": {1: 2, 2: 4},
    },
}


def some(number: int) -> tuple[str, ...]:
    """For what is repeated often: one way or the other, and all only in long mode."""
    return tuple(WAYS) if LONG else (("as planned", "in batches")[number % 2],)


def check(
    text: str, streams: dict[str, Streamed | pa.Table], *ways: str, **options: Any
) -> pa.Table:
    """Assert that both engines give the same rows in the same order, whichever way it is run."""
    given = {n: s if isinstance(s, Streamed) else Streamed([s]) for n, s in streams.items()}
    wanted = by_duckdb(text, given)
    for way in ways or WAYS:
        got = by_tidegate(text, given, **WAYS[way] | options)
        found = differences(got.rows, wanted)
        assert not found, f"{text}\n{way}\n" + "\n".join(found)
    return wanted


def query(
    on: str, left: str = "[RANGE 10 SECONDS]", right: str = "", items: str = ITEMS, rest: str = ""
) -> str:
    return f"SELECT {items} FROM l {left} JOIN r {right or left} ON {on} {rest}"


def sides(seed: int, rows: int = 120, sources: int = 1, **options: Any) -> dict[str, Streamed]:
    draw = np.random.default_rng([3, seed])
    options = {"span_s": 15, **options}
    return {
        name: Streamed([data.rows(draw, rows // sources, **options) for _ in range(sources)])
        for name in ("l", "r")
    }


@pytest.mark.parametrize("name", list(predicate.ALL)[:: 1 if LONG else 2])
def test_predicates(name: str) -> None:
    wanted = check(query(predicate.ALL[name]), sides(1, 140), *some(len(name)))
    assert wanted.num_rows or name == "nulls: never"


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_random_predicates_windows_and_sources(seed: int) -> None:
    draw = np.random.default_rng([5, seed])
    left, right = predicate.windows(draw)
    text = query(predicate.predicate(draw), left, right)
    rows, sources = int(draw.choice([1, 30, 100])), int(draw.integers(1, 4))
    options: dict[str, Any] = {
        "batch_rows": int(draw.choice([20, 60, 1000])),
        "instances": int(draw.integers(1, 5)),
        "buckets": int(draw.choice([4, 64])),
        "switches": {1: int(draw.integers(1, 5))},
    }
    way = list(WAYS)[seed % len(WAYS)]
    check(text, sides(seed, rows, sources), way, **options)


@pytest.mark.parametrize("left", predicate.WINDOWS)
@pytest.mark.parametrize("right", ["[RANGE 1 SECOND]", "[ROWS 3]"])
def test_windows_of_time_and_of_tuples(left: str, right: str) -> None:
    for on in ON if LONG else ON[:1]:
        check(query(on, left, right), sides(2, 90, 2), "as planned", batch_rows=100)


def trades(draw: data.Generator, rows: int) -> pa.Table:
    """Prices around their average of the day before, and none that equals it."""
    average = draw.integers(2_000, 90_000, 10)
    company = draw.integers(0, 10, rows)
    away = draw.integers(1, 12, rows) * draw.choice([-1, 1], rows)
    return pa.table(
        {
            "ts": pa.array(np.sort(draw.integers(0, 60_000_000, rows)), TIME),
            "id": pa.array([f"C{c}" for c in company]),
            "price": pa.array(average[company] + average[company] * away // 400 + away, pa.int32()),
            "average": pa.array(average[company], pa.int32()),
        }
    )


@pytest.mark.parametrize("seed", range(SEEDS // 8))
def test_hedges(seed: int) -> None:
    draw = np.random.default_rng([11, seed])
    items = "l.id AS r_id, l.price AS r_price, r.id AS s_id, r.price AS s_price"
    text = query(predicate.HEDGE, "[RANGE 20 SECONDS]", items=items)
    streams = {"l": trades(draw, 150), "r": trades(draw, 150)}
    assert check(text, streams, *some(seed)).num_rows


def calls(draw: data.Generator, rows: int) -> pa.Table:
    """Call records in the order of their ends; few subscribers, so that calls meet."""
    ends = np.sort(draw.integers(0, 600_000_000, rows))
    number = np.array([f"34600{n:03d}" for n in range(12)])
    return pa.table(
        {
            "ts": pa.array(ends, TIME),
            "src": number[draw.integers(0, 12, rows)],
            "dst": number[draw.integers(0, 12, rows)],
            "start_time": pa.array(ends - draw.integers(1, 200_000_000, rows), TIME),
            "end_time": pa.array(ends, TIME),
            "lat": draw.uniform(36, 43.5, rows),
            "lon": draw.uniform(-9, 3, rows),
        }
    )


@pytest.mark.parametrize("seed", range(SEEDS // 8))
@pytest.mark.parametrize(
    ("on", "items"),
    [
        (predicate.OVERLAP, "l.src AS a, r.src AS b, l.start_time AS t, r.start_time AS u"),
        (predicate.SAME_CALLER, f"l.src AS a, {predicate.DISTANCE_KM} AS km"),
        (f"l.src <> r.src AND {predicate.DISTANCE_KM} < 80", f"{predicate.DISTANCE_KM} AS km"),
    ],
    ids=["overlap", "distance of a caller", "calls near each other"],
)
def test_call_records(seed: int, on: str, items: str) -> None:
    """Call records joined with themselves, in time and in space."""
    records = Streamed([calls(np.random.default_rng([13, seed]), 150)])
    windows = "FROM c AS l [RANGE 60 SECONDS] JOIN c AS r [RANGE 60 SECONDS]"
    assert check(f"SELECT {items} {windows} ON {on}", {"c": records}, *some(seed)).num_rows


def numbers(draw: data.Generator, rows: int, values: list[Any], type_: pa.DataType) -> pa.Table:
    chosen = [values[v] for v in draw.integers(0, len(values), rows)]
    return pa.table(
        {
            "ts": pa.array(np.sort(draw.integers(-30, 30, rows)), TIME),
            "x": pa.array(chosen, type_, from_pandas=False),
            "n": pa.array(range(rows), pa.int64()),
        }
    )


COMPARED = (
    "l.x = r.x",
    "l.x < r.x",
    "l.x >= r.x",
    "l.x BETWEEN r.x - 1 AND r.x + 1",
    "l.x > r.x - 1 AND l.x < r.x + 1",
    "abs(l.x - r.x) <= 1",
    "l.x <= r.x + 1",
    "r.x BETWEEN l.x AND l.x",
    "l.x <> r.x",
    "greatest(l.x, r.x) = l.x",
    "least(l.x, r.x) < 1",
)
REALS = [None, NAN, INF, -INF, 0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 0.1, 1.1, 5e-324, 1e308]
SHORT_REALS = [None, NAN, INF, -INF, 0.0, -0.0, 1.0, 1.0 + 2**-23, -1.0, 0.1, 1.1, 1e-45, 3e38]


@pytest.mark.parametrize("on", COMPARED)
@pytest.mark.parametrize(
    ("type_", "values"),
    [(pa.float64(), REALS), (pa.float32(), SHORT_REALS)],
    ids=["double", "float"],
)
def test_nan_infinity_and_zeros(on: str, type_: pa.DataType, values: list[Any]) -> None:
    if type_ == pa.float32():
        on = on.replace("1", "CAST(1 AS DOUBLE)")  # FLOAT + INT is DOUBLE, but not in DuckDB
    draw = np.random.default_rng(17)
    streams = {n: numbers(draw, 60, values, type_) for n in ("l", "r")}
    text = query(on, "[RANGE 1 SECOND]", items="l.n AS a, r.n AS b")
    assert check(text, streams, *(WAYS if LONG else ("as planned",))).num_rows


LARGE = [None, 2**62, 2**62 + 1, 2**62 - 1, 2**62 + 2, 2**53, 2**53 + 1, 2**53 + 2, -(2**61), 0]


@pytest.mark.parametrize("on", COMPARED)
def test_numbers_that_no_double_holds(on: str) -> None:
    draw = np.random.default_rng(19)
    streams = {n: numbers(draw, 60, LARGE, pa.int64()) for n in ("l", "r")}
    text = query(on, "[RANGE 1 SECOND]", items="l.n AS a, r.n AS b")
    assert check(text, streams, *(WAYS if LONG else ("as planned",))).num_rows


def moved(table: pa.Table, times: list[int]) -> pa.Table:
    return table.set_column(0, "ts", pa.array(sorted(times), TIME))


@pytest.mark.parametrize("on", ON if LONG else ON[1:2])
@pytest.mark.parametrize("shape", ["no left", "no right", "nothing", "one", "one time", "bursts"])
def test_shapes_of_streams(shape: str, on: str) -> None:
    draw = np.random.default_rng(23)
    left, right = data.rows(draw, 80), data.rows(draw, 80)
    if shape in ("no left", "nothing"):
        left = left.slice(0, 0)
    if shape in ("no right", "nothing"):
        right = right.slice(0, 0)
    if shape == "one":
        left, right = (moved(t.slice(0, 1), [5]) for t in (left, right))
    if shape == "one time":
        left, right = (moved(t, [7] * 80) for t in (left, right))
    if shape == "bursts":
        left, right = (
            moved(t, [int(v) * 10**9 for v in draw.integers(0, 3, 80)]) for t in (left, right)
        )
    for windows in (("[RANGE 1 SECOND]", ""), ("[ROWS 5]", "[RANGE 0 SECONDS]")):
        wanted = check(query(on, *windows), {"l": left, "r": right}, *some(0), batch_rows=90)
        assert bool(wanted.num_rows) == (shape in ("one time", "bursts")) or shape == "one"


@pytest.mark.parametrize("windows", [("[RANGE 5 SECONDS]", ""), ("[ROWS 4]", "[ROWS 9]")])
@pytest.mark.parametrize(
    "where",
    ["l.i > 0", "l.i > 0 AND r.t", "r.s LIKE 'a%' OR r.s IS NULL", "l.f < r.f AND l.k IN (1, 2)"],
)
def test_where_on_either_side(windows: tuple[str, str], where: str) -> None:
    """What WHERE lets pass is decided after the window: a window of tuples counts them all."""
    text = query("l.k = r.k AND abs(l.i - r.i) <= 12", *windows, rest=f"WHERE {where}")
    assert check(text, sides(29, 200), *some(1)).num_rows


@pytest.mark.parametrize("on", ["a.k = b.k AND a.i < b.i", "abs(a.f - b.f) <= 50", "a.ts < b.ts"])
@pytest.mark.parametrize("window", ["[RANGE 2 SECONDS]", "[ROWS 6]"])
def test_a_stream_with_itself(on: str, window: str) -> None:
    text = f"SELECT a.i AS x, b.i AS y FROM l AS a {window} JOIN l AS b {window} ON {on}"
    assert check(text, {"l": sides(31, 100, 3)["l"]}, *some(1), batch_rows=110).num_rows


def test_late_and_rejected_tuples_do_not_meet() -> None:
    given = sides(37, 150, 2)
    draw = np.random.default_rng(37)
    streams = {}
    for name, stream in given.items():
        made = []
        for table in stream.sources:
            moved_ = np.argsort(np.arange(len(table)) + draw.integers(0, 6, len(table)))
            times = table["ts"].take(pa.array(moved_)).to_pylist()
            for gap in draw.choice(len(times), 4, replace=False):
                times[gap] = None
            made.append(table.set_column(0, "ts", pa.array(times, TIME)))
        streams[name] = Streamed(made, disorder_us=200_000)
    assert check(query("l.k = r.k"), streams).num_rows


def test_the_select_list_computes() -> None:
    items = (
        "l.i * 2 - r.i AS a, concat(l.s, '/', r.s) AS b, CASE WHEN l.f > r.f THEN 'l' ELSE 'r' END "
        "AS c, coalesce(l.d, r.d) AS d, l.ts AS e, r.ts AS f, unix_micros(r.ts) - "
        "unix_micros(l.ts) AS g, l.day = r.day AS h, 7 AS i, greatest(l.at, r.at) AS j"
    )
    assert check(query("l.k = r.k", items=items), sides(41)).num_rows


@pytest.mark.parametrize("name", predicate.TIME_BOUNDS)
def test_times_of_today(name: str) -> None:
    """Numbers of microseconds that singles do not hold, nor differences of them."""
    now_us = 1_700_000_000_000_000
    streams = {}
    for side, stream in sides(43, 140).items():
        (table,) = stream.sources
        for column in ("ts", "at"):
            times = table[column].cast(pa.int64()).to_pylist()
            later = pa.array([None if t is None else t + now_us for t in times], TIME)
            table = table.set_column(table.column_names.index(column), column, later)
        streams[side] = table
    assert check(query(predicate.TIME_BOUNDS[name]), streams, *some(1)).num_rows


@pytest.mark.parametrize("window", ["[RANGE 3 SECONDS]", "[ROWS 8]"])
def test_a_side_of_several_streams(window: str) -> None:
    """Streams one after the other in a union are in the order of sources of one stream."""
    given = sides(53, 120, 2)
    text = query("l.k = r.k AND l.i <= r.i", window)
    wanted = by_duckdb(text, given)
    union = "(SELECT * FROM a UNION ALL SELECT * FROM b) AS l"
    parts = dict(zip("ab", (Streamed([t]) for t in given["l"].sources), strict=True))
    text = text.replace("FROM l", f"FROM {union}")
    got = by_tidegate(text, {**parts, "r": given["r"]}, instances=2, batch_rows=90)
    assert wanted.num_rows
    assert not differences(got.rows, wanted)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("windows", [("[RANGE 2 SECONDS]", "[RANGE 9 SECONDS]"), ("[ROWS 30]", "")])
def test_many_small_batches(way: str, on: str, windows: tuple[str, str]) -> None:
    """State is merged and purged many times on the way."""
    switches = {40: 3, 90: 1, 150: 4}
    streams = sides(59, 400, 2, span_s=60)
    check(query(on, *windows), streams, way, batch_rows=4, switches=switches)
