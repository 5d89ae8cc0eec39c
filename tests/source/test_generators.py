"""All generators: what each promises by itself, and what all of them promise alike."""

from __future__ import annotations

import json
import pickle
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import SourceError
from tidegate.gate.lateness import late_mask
from tidegate.schema import normal_schema
from tidegate.source.generate.tpch import shuffled
from tidegate.source.generate.zipf import ranks, zipf
from tidegate.source.generator import GeneratorSource, described, names, open_generator
from tidegate.testing.clock import ManualClock

NAMES = names()
KEYS = {
    "taxi": "route",
    "calls": "src",
    "tasks": "job_id",
    "packets": "src",
    "trades": "symbol",
    "orders": "o_custkey",
    "tweets": "hashtags",
}
BURSTS = [n for n in NAMES if n not in ("orders", "lineitem")]
PLAIN = "seed=7&rows=10_000_000"
ALL_AT_ONCE = f"{PLAIN}&disorder=3&rate=500"


def opened(name: str, query: str = PLAIN, clock: ManualClock | None = None) -> GeneratorSource:
    return open_generator(f"generator:{name}?{query}", "stream g", None, clock)


@cache
def read(name: str, query: str = PLAIN, start: int = 0, stop: int = 3000) -> pa.Table:
    source = opened(name, query)
    return source.reader(start, stop).read(source.schema.names).table


def frame(name: str, query: str = PLAIN, start: int = 0, stop: int = 50_000) -> pd.DataFrame:
    return read(name, query, start, stop).to_pandas()


def times_us(name: str, query: str = PLAIN, start: int = 0, stop: int = 50_000) -> np.ndarray:
    numbers, valid = opened(name, query).times(start, stop)
    assert valid.all()
    return numbers


@settings(max_examples=max(75, settings().max_examples))
@given(st.data(), st.sampled_from(NAMES), st.sampled_from([0, 2**17 - 1500, 10**6 + 17]))
def test_any_range_of_any_columns_is_a_slice_of_the_whole(
    data: st.DataObject, name: str, base: int
) -> None:
    query = ALL_AT_ONCE
    query += "&drift=5&skew=1.2" if name in KEYS else ""
    query += "&burst=1.5" if name in BURSTS else ""
    whole = read(name, query, base, base + 3000)
    start = data.draw(st.integers(0, 3000))
    stop = data.draw(st.integers(start, 3000))
    columns = data.draw(st.lists(st.sampled_from(whole.column_names), unique=True, min_size=1))
    source = opened(name, query)
    reader = pickle.loads(pickle.dumps(source.reader(base + start, base + stop)))
    rows = reader.read(columns)
    assert rows.table == whole.select(columns).slice(start, stop - start)
    assert rows.seq.tolist() == list(range(base + start, base + stop))
    expected = whole.column(described(name, "").time).slice(start, stop - start)
    assert source.times(base + start, base + stop)[0].tolist() == (
        expected.cast(pa.int64()).to_pylist()
    )


PINNED = {
    "taxi": 2379246274,
    "calls": 2562118337,
    "tasks": 1372499193,
    "packets": 831679685,
    "trades": 1629200244,
    "r": 1252561689,
    "s": 1559183938,
    "tweets": 200725494,
    "orders": 1405147633,
    "lineitem": 2559108307,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_bits_are_pinned(name: str) -> None:
    """Other rows would change every benchmark and every golden file made from them."""
    rows = read(name).slice(1000, 100).to_pylist()
    assert zlib.crc32(json.dumps(rows, default=str).encode()) == PINNED[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_the_one_described(name: str) -> None:
    about = described(name, "")
    table = read(name)
    table.validate(full=True)
    assert table.schema == about.schema == normal_schema(about.schema)
    assert about.time in about.schema.names
    assert about.summary
    assert all(column.null_count == 0 for column in table.columns)
    assert {"rows", "rate", "start", "seed", "disorder", "pace"} <= {
        p.name for p in about.parameters
    }
    assert all(p.meaning for p in about.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_event_times_never_decrease_and_keep_their_rate(name: str) -> None:
    for start in (0, 2**20 - 25_000, 10**9):
        for query in (PLAIN, f"{PLAIN}&rate=2000", f"{PLAIN}&rate=0.5"):
            assert (np.diff(times_us(name, query, start, start + 50_000)) >= 0).all()
    even = "&burst=0" if name == "trades" else ""
    spread = times_us(name, f"{PLAIN}&rate=100&start=2020-05-05{even}", 0, 50_001)
    assert (spread[-1] - spread[0]) / 1e6 == pytest.approx(500, abs=0.1)
    if name != "lineitem":
        assert str(np.datetime64(int(spread[0]), "us")).startswith("2020-05-05T00:00:00.0")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("disorder", ["0.5", "20"])
def test_disorder_is_there_and_is_bounded(name: str, disorder: str) -> None:
    query = f"{PLAIN}&rate=1000&disorder={disorder}"
    numbers = times_us(name, query)
    limit_us = int(float(disorder) * 1e6)
    behind = np.maximum.accumulate(numbers) - numbers
    assert behind.max() <= limit_us
    assert behind.max() > 0.9 * limit_us
    assert (behind > 0).mean() > 0.5
    valid = np.ones(len(numbers), np.bool_)
    floor = np.iinfo(np.int64).min
    assert not late_mask(numbers, valid, floor, limit_us, floor).any()
    assert late_mask(numbers, valid, floor, limit_us // 2, floor).any()


@pytest.mark.parametrize("name", BURSTS)
def test_bursts_change_the_rate_and_not_the_average(name: str) -> None:
    query = f"{PLAIN}&rate=1000&burst=1.5"
    numbers = times_us(name, query, 0, 2**20 + 1)
    assert (np.diff(numbers) >= 0).all()
    assert (numbers[-1] - numbers[0]) / 1e6 == pytest.approx(2**20 / 1000, rel=0.01)
    seconds = (numbers - numbers[0]) // 1_000_000
    per_second = np.bincount(seconds)
    assert np.percentile(per_second, 10) < 500
    assert per_second.max() > 5_000


def first_keys(name: str, query: str, start: int = 0, stop: int = 50_000) -> list[object]:
    source = opened(name, query)
    column = source.reader(start, stop).read([KEYS[name]]).table.column(0)
    if name == "tweets":
        column = pc.list_element(pc.split_pattern(column, " "), 0)
        column = column.filter(pc.not_equal(column, ""))
    return column.to_pylist()


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_as_many_and_as_skewed_as_asked_for(name: str) -> None:
    for skew in (0.0, 0.8, 1.3):
        found = Counter(first_keys(name, f"{PLAIN}&keys=500&skew={skew}"))
        assert len(found) <= 500
        assert len(found) > 400
        total = sum(found.values())
        (_, first), (_, second) = found.most_common(2)
        harmonic = sum(r**-skew for r in range(1, 501))
        assert first == pytest.approx(total / harmonic, rel=0.1, abs=40)
        if skew:
            assert first / second == pytest.approx(2**skew, rel=0.15)


@pytest.mark.parametrize("name", KEYS)
def test_hot_keys_drift_away(name: str) -> None:
    def hottest(query: str, start: int) -> object:
        return Counter(first_keys(name, query, start, start + 5_000)).most_common(1)[0][0]

    query = f"{PLAIN}&keys=200&skew=1.5&rate=1000"
    assert len({hottest(query, at) for at in range(0, 50_000, 10_000)}) == 1
    drifting = f"{query}&drift=0.1{'&burst=0' if name == 'trades' else ''}"
    hot = [hottest(drifting, at) for at in range(0, 50_000, 10_000)]
    assert len(set(hot)) == 5
    later = Counter(first_keys(name, drifting, 40_000, 45_000))
    order = [key for key, _ in later.most_common()]
    assert [order.index(key) for key in hot] == pytest.approx([4, 3, 2, 1, 0], abs=2)


@pytest.mark.parametrize("name", NAMES)
def test_seeds_differ(name: str) -> None:
    other = read(name, "seed=8&rows=10_000_000")
    mine = read(name)
    assert mine == read(name, "rows=10_000_000&seed=7")
    for column in mine.column_names:
        if column not in ("o_orderkey", "o_shippriority"):
            assert mine.column(column) != other.column(column)


def test_call_records() -> None:
    rows = frame("calls", f"{PLAIN}&keys=50")
    assert (rows.src != rows.dst).all()
    assert rows.src.str.fullmatch(r"346\d{8}").all()
    assert set(rows.src) == set(rows.dst)
    assert rows.src.nunique() == 50
    assert (rows.start_time < rows.end_time).all()
    assert (rows.end_time <= rows.ts).all()
    assert (rows.ts - rows.end_time).dt.total_seconds().max() < 2
    seconds = (rows.end_time - rows.start_time).dt.total_seconds()
    assert seconds.min() >= 1
    assert seconds.mean() == pytest.approx(121, rel=0.05)
    many = frame("calls")
    assert set(many.district) == set(range(1, 201))
    middle = many.groupby("district")[["lat", "lon"]].transform("median")
    assert (abs(many[["lat", "lon"]] - middle) < 0.11).all().all()
    home = rows.groupby("src").district.agg(lambda d: (d == d.mode()[0]).mean())
    assert home.min() > 0.8


def test_task_events() -> None:
    rows = frame("tasks", f"{PLAIN}&keys=2000")
    assert set(rows.scheduling_class) == {0, 1, 2, 3}
    assert set(rows.event_type) == set(range(9))
    assert set(rows.priority) <= set(range(12))
    assert rows.task_index.between(0, 511).all()
    assert rows.machine_id.between(1, 12_500).all()
    by_job = rows.groupby("job_id")
    for column in ("user", "scheduling_class", "priority", "disk"):
        assert (by_job[column].nunique() == 1).all()
    assert (by_job.cpu.max() / by_job.cpu.min() < 1.08).all()
    assert rows.cpu.between(0.01, 0.3).all()
    assert described("tasks", "").parameters[4].default == "600000"


def test_packets() -> None:
    rows = frame("packets")
    assert (rows.src != rows.dst).all()
    assert rows.src.str.fullmatch(r"10\.\d+\.\d+\.\d+").all()
    assert rows["size"].between(40, 1500).all()
    assert 350 < rows["size"].mean() < 700
    assert rows.src_port.between(1024, 65_535).all()
    assert rows.protocol.value_counts(normalize=True).udp == pytest.approx(1 / 16, rel=0.1)
    assert rows.dst_port.nunique() == 8


def test_trades_have_what_a_hedge_needs() -> None:
    rows = frame("trades")
    assert rows.symbol.nunique() == 10
    assert rows.symbol.str.fullmatch("[A-Z]{4}").all()
    assert (rows.price != rows.average_price).all()
    assert (rows.groupby("symbol").average_price.nunique() == 1).all()
    away = (rows.price - rows.average_price) / rows.average_price
    assert away.abs().max() < 0.04
    assert (rows.quantity > 0).all()
    some = rows.assign(nd=away).iloc[::100]
    pairs = some.merge(some, how="cross", suffixes=("_l", "_r"))
    hedged = (pairs.symbol_l != pairs.symbol_r) & (pairs.nd_r / pairs.nd_l).between(-1.05, -0.95)
    assert 0.001 < hedged.mean() < 0.2


def test_prices_move_slowly() -> None:
    one = frame("trades", f"{PLAIN}&keys=1&burst=0&rate=100", 0, 20_000).price
    assert one.diff().abs().max() < 0.02 * one.mean()
    assert one.max() - one.min() > 0.002 * one.mean()


@pytest.mark.parametrize(("domain", "share"), [(200, 0.0105), (10_000, 4.2e-6)])
def test_the_band_join_matches_as_often_as_the_benchmark_says(domain: int, share: float) -> None:
    query = f"{PLAIN}&domain={domain}"
    r, s = (read(name, query, 0, 20_000) for name in "rs")
    x, y = (r.column(c).to_numpy().astype(np.float64) for c in "xy")
    a, b = (s.column(c).to_numpy().astype(np.float64) for c in "ab")
    for values in (x, y, a, b):
        assert values.min() >= 1
        assert values.max() <= domain
        assert values.mean() == pytest.approx((domain + 1) / 2, rel=0.02)
    matches = sum(
        int(((np.abs(x - a[i]) <= 10) & (np.abs(y - b[i]) <= 10)).sum()) for i in range(2_000)
    )
    assert matches / (20_000 * 2_000) == pytest.approx(share, rel=0.25)
    assert pc.all(pc.equal(pc.utf8_length(r.column("z")), 20)).as_py()
    assert 0.45 < pc.mean(s.column("d").cast(pa.int8())).as_py() < 0.55
    assert pc.min_max(s.column("c")).as_py()["max"] < 1


def test_hashtags_are_those_of_the_text() -> None:
    counts: Counter[int] = Counter()
    for query in (PLAIN, f"{PLAIN}&keys=3&skew=2"):
        for row in read("tweets", query, 0, 20_000).to_pylist():
            tags = row["hashtags"].split()
            assert tags == [w[1:] for w in row["text"].split() if w.startswith("#")]
            assert len(set(tags)) == len(tags)
            assert 3 <= len(row["text"].split()) - len(tags) <= 10
            assert "  " not in row["text"]
            counts[len(tags)] += 1
    assert set(counts) == {0, 1, 2, 3}
    assert len(set(first_keys("tweets", f"{PLAIN}&keys=20000&skew=0"))) > 17_000


def test_lineitems_are_the_lines_of_the_orders() -> None:
    rate = 1000
    lines = frame("lineitem", f"{PLAIN}&rate={4 * rate}", 0, 2**18)
    orders = frame("orders", f"{PLAIN}&rate={rate}", 0, 2**16 + 100)
    assert orders.o_orderkey.is_unique
    assert not lines.duplicated(["l_orderkey", "l_linenumber"]).any()
    numbers = lines.groupby("l_orderkey").l_linenumber.agg(["count", "max"])
    complete = numbers[numbers["count"] == numbers["max"]]
    assert len(complete) > 0.999 * len(numbers)
    shares = complete["count"].value_counts(normalize=True)
    assert set(shares.index) == set(range(1, 8))
    assert shares.min() > 0.13
    both = lines.merge(orders, left_on="l_orderkey", right_on="o_orderkey")
    assert len(both) == len(lines)
    lag = (both.l_shipdate - both.o_orderdate).dt.total_seconds()
    assert lag.min() > 0
    assert lag.max() < 2 * 2**17 / (4 * rate) + 1
    assert lag.mean() == pytest.approx(2**17 / (4 * rate), rel=0.05)


def test_lineitems_and_orders_look_like_those_of_tpc_h() -> None:
    lines = frame("lineitem")
    pairs = (lines.l_returnflag + lines.l_linestatus).value_counts(normalize=True)
    assert set(pairs.index) == {"AF", "RF", "NF", "NO"}
    assert pairs["NO"] == pytest.approx(0.5, rel=0.05)
    whole = lines.l_quantity.astype(int)
    assert set(whole) == set(range(1, 51))
    each = lines.l_extendedprice.astype(float) / whole
    assert each.between(900, 2100).all()
    assert lines.l_discount.astype(float).between(0, 0.1).all()
    assert set((lines.l_tax.astype(float) * 100).round()) == set(range(9))
    orders = frame("orders")
    assert set(orders.o_shippriority) == {0}
    assert orders.c_mktsegment.nunique() == 5
    assert (orders.groupby("o_custkey").c_mktsegment.nunique() == 1).all()
    assert orders.o_custkey.between(1, 150_000).all()
    keys = orders.o_orderkey.iloc[:16].tolist()
    assert keys == [*range(1, 9), *range(33, 41)]


@given(st.integers(0, 2**40), st.integers(0, 2**63 - 1))
@settings(max_examples=10)
def test_shuffling_is_a_permutation_of_every_block(block: int, seed: int) -> None:
    positions = np.arange(block << 17, (block + 1) << 17, dtype=np.int64)
    assert (np.sort(shuffled(positions, seed)) == positions).all()
    assert shuffled(positions[:0], seed).tolist() == []


@given(
    st.integers(1, 3000),
    st.floats(0, 3),
    st.lists(st.floats(0, 1, exclude_max=True), max_size=50),
)
@settings(max_examples=60)
def test_ranks_are_what_a_plain_search_finds(keys: int, skew: float, draw: list[float]) -> None:
    law = zipf(keys, skew)
    near = [float(np.nextafter(s, d)) for s in law.shares[:20] for d in (0, 1)]
    numbers = np.array([n for n in [*draw, *law.shares[:20].tolist(), *near] if n < 1])
    assert ranks(law, numbers).tolist() == np.searchsorted(law.shares, numbers, "right").tolist()


def test_with_a_pace_rows_come_with_wall_time() -> None:
    clock = ManualClock(5.0)
    source = opened("trades", "rows=1000&pace=200", clock)
    assert source.live()
    assert not source.ended()
    assert source.extend(1) == 1
    clock.advance(0.5)
    assert source.extend(1_000_000) == 101
    assert source.extend(0) == 101
    clock.advance(2)
    assert source.extend(102) == 501
    assert not source.ended()
    clock.advance(100)
    assert source.extend(502) == 1000
    assert source.ended()
    assert not source.live()
    same = source.reader(0, 1000).read(source.schema.names).table
    assert same == read("trades", "rows=1000&rate=200", 0, 1000)


def test_with_a_pace_alone_there_is_no_end() -> None:
    clock = ManualClock()
    source = opened("packets", "pace=1e6", clock)
    source.extend(1)
    clock.advance(10**6)
    assert source.extend(1) == 10**12 + 1
    assert source.live()
    assert not source.ended()
    rows = source.reader(10**12 - 5, 10**12).read(["ts", "size"])
    assert rows.table.num_rows == 5
    assert rows.table.column("ts").to_pylist() == sorted(rows.table.column("ts").to_pylist())


def test_a_restart_goes_on_from_where_it_was() -> None:
    clock = ManualClock()
    source = opened("calls", "pace=100", clock)
    assert source.extend(7_000) == 7_000
    clock.advance(1)
    assert source.extend(7_001) == 7_100


def traced(folder: Path, text: str) -> str:
    path = folder / "rates.csv"
    path.write_text(text)
    return f"pace={path}"


def test_a_pace_from_a_file_changes_with_time_and_event_times_follow_it(tmp_path: Path) -> None:
    pace = traced(tmp_path, "t,r,s\n0,100,1\n2,0,1\n5,400,1\n6,50,1\n")
    clock = ManualClock()
    source = opened("r", f"{pace}&column=r&start=1970-01-01", clock)
    assert source.extend(0) == 0
    come = []
    for _ in range(8):
        clock.advance(1)
        come.append(source.extend(1_000_000))
    assert come == [100, 200, 200, 200, 200, 600, 650, 650]
    assert source.ended(), "the last rate lasts as long as the one before it"
    at = source.arrivals
    assert at is not None
    assert at.at(np.array([0, 99, 199, 200, 599])).tolist() == pytest.approx(
        [0.01, 1, 2, 5.0025, 6]
    )
    times, _ = source.times(0, 650)
    assert (np.diff(times) >= 0).all()
    assert np.histogram(times / 1e6, bins=range(8))[0].tolist() == [100, 100, 0, 0, 0, 400, 50]


def test_a_restart_goes_on_in_the_file_where_it_was(tmp_path: Path) -> None:
    clock = ManualClock()
    source = opened("r", traced(tmp_path, "t,rate\n10,100\n12,0\n13,20\n"), clock)
    assert source.extend(150) == 150
    clock.advance(1.75)
    assert source.extend(0) == 205, "half a second of the first rate, one of none, a quarter"
    assert pickle.loads(pickle.dumps(source.reader(0, 5))).read(["ts"]).table.num_rows == 5


@pytest.mark.parametrize(
    ("text", "rest", "message"),
    [
        ("t,r,s\n0,1,2\n", "", "one column of rates must be chosen; got r, s. Say which, as col"),
        ("t,r,s\n0,1,2\n", "&column=q", "column must be one of the file; got q"),
        ("time,r\n0,1\n", "", "needs a header with t and a column of rates; got time, r"),
        ("", "", "needs a header with t and a column of rates; got no line"),
        ("t,r\n", "", "needs a line with a rate; got none"),
        ("t,r\n0,-1\n", "", "r must be a number from 0 on; got '-1' in line 2"),
        ("t,r\n0,1\n0,2\n", "", "t must grow from line to line; got 0 after 0 in line 3"),
        ("t,r\n0,0\n", "", "needs a rate above 0; got none"),
        ("t,r\n0,1\n", "&rate=5", "rate cannot be given where pace is a file"),
    ],
)
def test_a_file_that_is_no_pace_is_refused(
    tmp_path: Path, text: str, rest: str, message: str
) -> None:
    with pytest.raises(SourceError) as error:
        opened("r", traced(tmp_path, text) + rest, ManualClock())
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("generator:lineitems", "got lineitems. Did you mean lineitem"),
        ("generator:", "the generator must be known; got no name"),
        ("generator:calls?keys=1", "keys must be a whole number from 2 to 1000000; got '1'"),
        ("generator:r?keys=5", "parameters must be known; got parameter keys"),
        ("generator:r?domain=0", "domain must be a whole number from 1 to 16777216; got '0'"),
        ("generator:trades?burst=9", "burst must be a number from 0 to 4; got '9'"),
        ("generator:trades?pace=0", "pace must be a number above 0, or a CSV file with rates"),
        ("generator:trades?pace=fast", "rates over time; got fast: No such file or directory"),
        ("generator:trades?column=r", "column is for a pace that is a CSV file; got column=r and"),
        ("generator:trades?drift=-1", "drift must be a number from 0 on; got '-1'"),
        ("generator:tweets?seed=1&seed=2", "a parameter can be given once; got seed twice"),
        ("generator:orders?disorder=1 hour", "disorder must be a number from 0 on"),
        ("generator:orders?rows=10**9", "rows must be a whole number from 0 on"),
        (
            "generator:orders?rows=1_000_000_000_000&rate=0.00001",
            "rows / rate must end before the year 140000",
        ),
    ],
)
def test_what_is_refused(uri: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        open_generator(uri, "stream g", None)
    assert message in str(raised.value)
    assert str(raised.value).startswith("stream g")
