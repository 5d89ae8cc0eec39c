"""Windows of every shape over awkward times, against DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.duckdb import data
from tests.duckdb.compare import Streamed, check

ALL = (
    "COUNT(*) AS n, SUM(i) AS s, AVG(f) AS a, MIN(d) AS lo, MAX(s) AS hi, STDDEV(f) AS sd, "
    "MEDIAN(f) AS m, COUNT(DISTINCT s) AS u, FIRST(i) AS f, LAST(i) AS l"
)
DAY_US = 86_400_000_000


def at(times_us: list[int]) -> pa.Table:
    """Rows at these times, in this order."""
    table = data.rows(np.random.default_rng(len(times_us)), len(times_us))
    return table.set_column(0, "ts", pa.array(times_us, data.SCHEMA.field("ts").type))


@pytest.mark.parametrize("window", data.WINDOWS)
@pytest.mark.parametrize("grouped", [False, True])
def test_shapes_of_windows(window: str, grouped: bool) -> None:
    rows = data.rows(np.random.default_rng(11), 150)
    text = f"SELECT {'k, ' if grouped else ''}{ALL} FROM s {window} {'GROUP BY k' * grouped}"
    assert check(text, {"s": rows}, batch_rows=60, instances=2).num_rows


@pytest.mark.parametrize("seed", range(6))
def test_any_range_and_slide(seed: int) -> None:
    """A few microseconds, so that every tuple lies on or beside a border."""
    draw = np.random.default_rng(seed)
    slide = int(draw.integers(1, 12))
    range_ = slide + int(draw.integers(0, 30))
    rows = at(sorted(int(t) for t in draw.integers(-40, 40, 60)))
    window = f"[RANGE {range_} MICROSECONDS SLIDE {slide} MICROSECONDS]"
    check(f"SELECT t, {ALL} FROM s {window} GROUP BY t", {"s": rows}, batch_rows=25, instances=2)


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([], id="no tuple"),
        pytest.param([0], id="one at the epoch"),
        pytest.param([-1], id="one just before it"),
        pytest.param([59_999_999, 60_000_000, 60_000_001], id="around a border"),
        pytest.param([-60_000_001, -60_000_000, -59_999_999], id="around a border before 1970"),
        pytest.param([7] * 40, id="all at once"),
        pytest.param([-30 * DAY_US, 0, DAY_US], id="long silence between"),
        pytest.param([-2_208_988_800_000_000 + n for n in range(5)], id="the year 1900"),
        pytest.param([4_102_444_800_000_000 + n for n in range(5)], id="the year 2100"),
    ],
)
@pytest.mark.parametrize("window", ["[RANGE 1 MINUTE]", "[RANGE 1 MINUTE SLIDE 25 SECONDS]"])
def test_awkward_times(times: list[int], window: str) -> None:
    check(f"SELECT {ALL} FROM s {window}", {"s": at(times)}, batch_rows=2, instances=2)


@pytest.mark.parametrize("window", ["[RANGE 365 DAYS]", "[RANGE 365 DAYS SLIDE 100 DAYS]"])
def test_the_first_and_the_last_year_of_the_calendar(window: str) -> None:
    rows = at([-62_135_596_800_000_000, -62_135_596_799_999_999, 0, 253_402_300_799_999_999])
    text = f"SELECT {ALL}, MIN(ts) AS early, MAX(ts) AS late FROM s {window}"
    check(text, {"s": rows}, batch_rows=1, instances=2)


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_small_batches_and_many_switches(batch_rows: int) -> None:
    rows = data.rows(np.random.default_rng(16), 3 * batch_rows + 5)
    text = f"SELECT k, {ALL} FROM s [RANGE 1 MINUTE SLIDE 25 SECONDS] GROUP BY k"
    switches = {1: 3, 2: 1, 3: 2, 5: 4}
    check(text, {"s": rows}, batch_rows=batch_rows, buckets=4, switches=switches)


def test_one_group_with_all_tuples() -> None:
    rows = data.rows(np.random.default_rng(12), 300, span_s=1)
    text = f"SELECT coalesce(NULL, 'one') AS one, {ALL} FROM s [RANGE 1 MINUTE] GROUP BY one"
    check(text, {"s": rows}, batch_rows=70, instances=3)


def test_every_tuple_a_group_of_its_own() -> None:
    times = [int(t) for t in np.sort(np.random.default_rng(13).integers(0, 10**8, 120))]
    rows = at(times).append_column("id", pa.array(np.random.default_rng(14).permutation(120)))
    text = f"SELECT id, {ALL} FROM s [RANGE 1 MINUTE SLIDE 20 SECONDS] GROUP BY id"
    check(text, {"s": rows}, batch_rows=50, instances=2)


@pytest.mark.parametrize("seed", [1, 2])
def test_several_sources_with_disorder_and_late_tuples(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sources = []
    for _ in range(3):
        rows = data.rows(draw, 80, span_s=120)
        moved = np.argsort(np.arange(80) + draw.integers(0, 6, 80), kind="stable")
        sources.append(rows.take(pa.array(moved)))
    stream = Streamed(sources, disorder_us=2_000_000)
    text = f"SELECT k, {ALL} FROM s [RANGE 1 MINUTE SLIDE 25 SECONDS] GROUP BY k"
    check(text, {"s": stream}, batch_rows=70, instances=2)


def test_a_time_column_of_another_name_and_type() -> None:
    days = data.rows(np.random.default_rng(15), 60).sort_by("day")
    days = days.filter(days["day"].is_valid()).drop_columns("ts")
    text = f"SELECT {ALL}, MIN(ts) AS earliest FROM s [RANGE 2 DAYS SLIDE 1 DAY]"
    check(text, {"s": Streamed([days], time="day")}, batch_rows=20)
