"""Every example runs without Spark and gives what it says; the one that needs it: tests/spark."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.examples.example import FOLDER, NEEDS_SPARK, files, header, load
from tidegate.cli.main import invoke
from tidegate.source.registry import open_uri

Row = dict[str, Any]


def run_sql(name: str, *options: str, out: str = "out", output: str = "") -> tuple[list[Row], Row]:
    """The rows of an example's output, the only one or one with a name, and its summary."""
    path, summary = str(FOLDER / name), Path("summary.json")
    shared = ["--master", "none", "--out", out, "--summary", str(summary)]
    assert invoke(["run", path, *shared, *options]) == 0
    return written(Path(out, output)), json.loads(summary.read_text())


def written(folder: Path) -> list[Row]:
    files = sorted(folder.glob("batch=*/*.parquet"))
    rows: list[Row] = pq.read_table(files, partitioning=None).to_pylist()
    return rows


def run_python(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    load(name).main("none")
    return capsys.readouterr().out


def printed(text: str) -> list[Row]:
    """Rows that the console sink printed as CSV."""
    rows: list[Row] = pa.csv.read_csv(io.BytesIO(text.encode())).to_pylist()
    return rows


def generated(uri: str, *columns: str) -> pa.Table:
    (source,) = open_uri(uri, "generated", None, False).discover()
    return source.reader(0, source.extend(10**9)).read(columns).table


def windows(rows: list[Row]) -> Iterator[list[Row]]:
    return (list(group) for _, group in groupby(rows, key=lambda r: r["window_end"]))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_top_routes() -> None:
    rows, summary = run_sql("top_routes.sql")
    assert summary["rows_in"] == 50_000
    found = list(windows(rows))
    assert len(found) == 19, "83 minutes, and two windows at either end that are not full"
    for window in found:
        counts = [r["rides"] for r in window]
        assert len(window) == 10
        assert counts == sorted(counts, reverse=True)


def test_late_rides() -> None:
    rows, summary = run_sql("late_rides.sql")
    late = pq.read_table(sorted(Path("out/_late").glob("batch=*/*.parquet")), partitioning=None)
    assert 0 < summary["rows_late"] == late.num_rows < 3_000
    assert sum(r["rides"] for r in rows) + late.num_rows == summary["rows_in"] == 30_000


def test_late_rides_as_it_says_for_more_disorder() -> None:
    text = (FOLDER / "late_rides.sql").read_text(encoding="utf-8")
    assert "DISORDER 50 SECONDS;" in text
    Path("patient.sql").write_text(text.replace("DISORDER 50 SECONDS;", "DISORDER 60 SECONDS;"))
    assert invoke(["run", "patient.sql", "--master", "none", "--summary", "s.json"]) == 0
    assert json.loads(Path("s.json").read_text())["rows_late"] == 0


def test_median_packet_size() -> None:
    rows, _ = run_sql("median_packet_size.sql")
    packets = generated("generator:packets?rows=30000&rate=1000", "ts", "protocol", "size")
    frame = packets.to_pandas()
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        inside = (frame.ts >= row["window_start"]) & (frame.ts < row["window_end"])
        sizes = frame[inside & (frame.protocol == row["protocol"])]["size"]
        assert row["packets"] == len(sizes) >= 100
        assert row["median"] == np.median(sizes)
        assert row["p95"] == pytest.approx(np.quantile(sizes, 0.95))
        assert row["percent_large"] == pytest.approx(100 * np.mean(sizes >= 1000), abs=0.051)


def test_calls_per_district() -> None:
    rows, _ = run_sql("calls_per_district.sql")
    calls = generated("generator:calls?rows=60000&rate=200", "ts", "src", "district")
    frame = calls.to_pandas()
    for window in windows(rows):
        assert len(window) == 5
        top = window[0]
        inside = (frame.ts >= top["window_start"]) & (frame.ts < top["window_end"])
        counts = frame[inside].district.value_counts()
        assert [r["calls"] for r in window] == counts.head(5).tolist()
        callers = frame[inside & (frame.district == top["district"])].src.nunique()
        assert top["callers"] == callers <= top["calls"]
        assert all(r["seconds"] > 0 for r in window)


def test_sliding_mean(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(run_python("sliding_mean.py", capsys))
    assert len({r["window_end"] for r in rows}) > 90
    assert sum(r["trades"] for r in rows) == 20_000 * 10, "each trade is in ten windows"
    trades = generated("generator:trades?rows=20000&rate=2000", "symbol", "price").to_pandas()
    ranges = trades.groupby("symbol").price.agg(["min", "max"])
    for row in rows:
        assert ranges["min"][row["symbol"]] <= row["price"] <= ranges["max"][row["symbol"]]


def test_busiest_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(run_python("busiest_hosts.py", capsys))
    columns = ("ts", "src", "protocol", "size")
    frame = generated("generator:packets?rows=20000&rate=2000", *columns).to_pandas()
    assert len(rows) > 20
    for window in list(windows(rows))[::4]:
        for row in window:
            inside = (frame.ts >= row["window_start"]) & (frame.ts < row["window_end"])
            sent = frame[inside & (frame.protocol == row["protocol"])].groupby("src")["size"].sum()
            assert sent[row["host"]] == row["bytes"]
            assert sent.nlargest(row["place"]).iloc[-1] == row["bytes"]


def test_own_aggregate(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(run_python("own_aggregate.py", capsys))
    found = tg.sink.memory()
    query = tg.Session(master="none").sql(
        """
        CREATE STREAM trades FROM 'generator:trades?rows=20000&rate=2000';
        SELECT symbol, SUM(price * quantity) / SUM(quantity) AS vwap, COUNT(*) AS trades
        FROM trades [RANGE 1 SECOND] GROUP BY symbol
        """
    )
    query.start(sink=found).wait()
    expected = found.table().to_pylist()
    assert len(rows) == len(expected) > 50
    for row, other in zip(rows, expected, strict=True):
        assert (row["symbol"], row["trades"]) == (other["symbol"], other["trades"])
        assert row["vwap"] == pytest.approx(other["vwap"], rel=1e-12)


def test_hedges() -> None:
    rows, summary = run_sql("hedges.sql")
    assert summary["rows_in"] == 5_000, "a self-join reads its stream once"
    assert 1_000 < len(rows) == summary["rows_out"]
    assert all(r["one"] < r["other"] for r in rows)
    assert [r["ts"] for r in rows] == sorted(r["ts"] for r in rows)


def test_own_trades() -> None:
    """Every pair of the window whose distances from the mean of the minute before are opposite."""
    rows, _ = run_sql("own_trades.sql")
    trades = generated("generator:trades?rows=5000&rate=1000", "ts", "symbol", "price").to_pandas()
    times, prices = trades["ts"], trades["price"].astype(float)
    means = trades.groupby("symbol")["price"].expanding().mean().droplevel(0).sort_index()
    assert times.is_monotonic_increasing
    assert times.iloc[-1] - times.iloc[0] < pd.Timedelta("1min")
    off = ((prices - means) / means).to_numpy()
    us = times.astype("int64").to_numpy() // (1 if times.dt.unit == "us" else 1_000)
    near = np.abs(us[:, None] - us) <= 50_000
    names = trades["symbol"].to_numpy(str)
    with np.errstate(all="ignore"):
        ratio = off[None, :] / off[:, None]
        found = near & (names[:, None] < names) & (off[:, None] != 0)
        found &= (ratio >= -1.05) & (ratio <= -0.95)
    assert abs(len(rows) - int(found.sum())) <= 0.01 * len(rows)
    assert len(rows) > 100


def inside(frame: pd.DataFrame, row: Row, time: str = "ts") -> pd.DataFrame:
    """What is in the window of a row."""
    return frame[(frame[time] >= row["window_start"]) & (frame[time] < row["window_end"])]


def test_heavy_callers() -> None:
    rows, _ = run_sql("heavy_callers.sql")
    uri = "generator:calls?rows=40000&rate=8&keys=2000"
    calls = generated(uri, "ts", "src", "start_time", "end_time").to_pandas()
    whole = {n: calls[n].dt.floor("s") for n in ("start_time", "end_time")}
    calls["seconds"] = (whole["end_time"] - whole["start_time"]).dt.total_seconds()
    found = list(windows(rows))
    assert len(found) > 100, "a window begins every minute"
    for window in found[:: len(found) // 3]:
        means = inside(calls, window[0]).groupby("src").seconds.agg(["mean", "count"])
        heavy = means[(means["mean"] > 200) & (means["count"] >= 10)].sort_index()
        assert [r["src"] for r in window] == heavy.index.tolist()
        assert [r["calls"] for r in window] == heavy["count"].tolist()
        assert [r["seconds"] for r in window] == heavy["mean"].round().tolist()


def test_profitable_areas() -> None:
    rows, _ = run_sql("profitable_areas.sql")
    uri = "generator:taxi?rows=20000&rate=4&keys=500"
    columns = ("dropoff_time", "medallion", "pickup_cell", "dropoff_cell", "fare", "tip")
    rides = generated(uri, *columns).to_pandas()
    rides["profit"] = rides.fare + rides.tip
    found = list(windows(rows))
    assert len(found) == 19, "83 minutes, and the windows of the last rides"
    for window in found[::6]:
        end = window[0]["window_end"]
        age = end - rides.dropoff_time
        before = rides.dropoff_time < end
        recent = rides[before & (age <= pd.Timedelta("15min"))]
        known = rides[before & (age <= pd.Timedelta("30min"))]
        profit = recent.groupby("pickup_cell").profit.median()
        taxis = known.groupby("medallion").dropoff_cell.last().value_counts()
        areas = (profit / taxis).dropna()
        best = areas.sort_values(ascending=False, kind="stable").head(10)
        assert [r["profitability"] for r in window] == pytest.approx(best.tolist(), abs=0.0051)
        for row in window:
            assert row["profit"] == pytest.approx(profit[row["cell"]])
            assert row["taxis"] == taxis[row["cell"]]


def test_overlapping_calls() -> None:
    copied, _ = run_sql("overlapping_calls.sql", output="copied")
    pairs = written(Path("out/pairs"))
    assert len(pairs) > 5_000
    assert all(r["first_start"] < r["second_start"] < r["first_end"] for r in pairs)
    calls = generated("generator:calls?rows=4000&rate=10&keys=1000", "ts", "start_time", "end_time")
    at, start, end = (calls[n].cast(pa.int64()).to_numpy() for n in calls.column_names)
    numbers = generated("generator:calls?rows=4000&rate=10&keys=1000", "src", "dst")
    src, dst = (np.unique(numbers[n].to_numpy(), return_inverse=True) for n in ("src", "dst"))
    code = {n: i for i, n in enumerate({*src[0], *dst[0]})}
    one, other = (np.array([code[n] for n in u])[i] for u, i in (src, dst))
    same = np.equal.outer
    shared = same(one, one) | same(one, other) | same(other, one) | same(other, other)
    near = abs(at[:, None] - at[None, :]) <= 60_000_000
    meets = (start[:, None] < start[None, :]) & (start[None, :] < end[:, None])
    assert len(pairs) == (shared & near & meets).sum()
    frame = pd.DataFrame(pairs)
    for window in windows(copied):
        times = inside(frame, window[0]).number.value_counts()
        assert [r["n"] for r in window] == times[times >= 3].head(5).tolist()
        assert all(r["n"] == times[r["number"]] for r in window)


def test_far_calls() -> None:
    rows, _ = run_sql("far_calls.sql")
    uri = "generator:calls?rows=20000&rate=20&keys=20000"
    calls = generated(uri, "ts", "src", "start_time", "lat", "lon").to_pandas()
    calls["second"] = calls.start_time.dt.floor("s")
    pairs = calls.merge(calls, on="src", suffixes=("_a", "_b"))
    apart = (pairs.second_b - pairs.second_a).dt.total_seconds()
    near = (pairs.ts_a - pairs.ts_b).abs() <= pd.Timedelta("10min")
    pairs = pairs[near & apart.between(1, 60)]
    a, b = (np.radians(pairs[[f"lat_{s}", f"lon_{s}"]].to_numpy()) for s in "ab")
    # The law of cosines, where the query has the haversine.
    flat = np.sin(a[:, 0]) * np.sin(b[:, 0])
    flat += np.cos(a[:, 0]) * np.cos(b[:, 0]) * np.cos(b[:, 1] - a[:, 1])
    km = 6371 * np.arccos(np.clip(flat, -1, 1))
    assert len(rows) == (km > 50).sum() > 1_000
    expected = sorted(zip(pairs.src[km > 50], km[km > 50].round(), strict=True))
    assert sorted((r["src"], r["km"]) for r in rows) == expected


def test_cpu_per_class() -> None:
    rows, _ = run_sql("cpu_per_class.sql")
    tasks = generated("generator:tasks?rows=20000&rate=50", "ts", "scheduling_class", "cpu")
    frame = tasks.to_pandas()
    found = list(windows(rows))
    assert [len(w) for w in found] == [4] * len(found)
    for row in found[2]:
        ends = pd.date_range(row["window_start"], row["window_end"], freq="s")[1:]
        mine = frame[frame.scheduling_class == row["scheduling_class"]]
        ages = (end - mine.ts for end in ends)
        sums = [
            mine.cpu[(age > pd.Timedelta(0)) & (age <= pd.Timedelta("60s"))].sum() for age in ages
        ]
        assert row["seconds"] == len(sums) == 60
        assert row["most"] == pytest.approx(max(sums), abs=0.00051)
        assert row["mean"] == pytest.approx(np.mean(sums), abs=0.00051)


def test_rows_over_join() -> None:
    rows, summary = run_sql("rows_over_join.sql")
    hedges, _ = run_sql("hedges.sql", out="hedges")
    assert summary["rows_in"] == 5_000
    assert len(rows) == 1 + (len(hedges) - 100) // 20 > 1_000
    trades = generated("generator:trades?rows=5000&rate=1000", "symbol", "average_price")
    average = dict(zip(*(trades[n].to_pylist() for n in trades.column_names), strict=True))
    shares = [100 * abs(h["one_price"] / average[h["one"]] - 1) for h in hedges]
    for place in (0, 1, len(rows) // 2, len(rows) - 1):
        row, taken = rows[place], slice(20 * place, 20 * place + 100)
        first, *_, last = hedges[taken]
        assert (row["window_start"], row["window_end"]) == (first["ts"], last["ts"])
        assert row["companies"] == len({h["one"] for h in hedges[taken]})
        assert row["percent"] == pytest.approx(np.mean(shares[taken]), abs=0.00051)
        assert row["most"] == pytest.approx(max(shares[taken]), abs=0.00051)


def test_tpch_q1() -> None:
    rows, _ = run_sql("tpch_q1.sql")
    found = list(windows(rows))
    assert [len(w) for w in found] == [4] * len(found)
    assert sum(r["count_order"] for r in rows) == 50_000
    columns = ("l_shipdate", "l_returnflag", "l_linestatus", "l_extendedprice", "l_discount")
    lines = generated("generator:lineitem?rows=50000", *columns, "l_tax").to_pandas()
    row = rows[5]
    mine = inside(lines, row, "l_shipdate")
    mine = mine[(mine.l_returnflag == row["l_returnflag"])]
    mine = mine[(mine.l_linestatus == row["l_linestatus"])]
    assert row["count_order"] == len(mine)
    assert row["sum_base_price"] == mine.l_extendedprice.sum()
    assert row["sum_disc_price"] == (mine.l_extendedprice * (1 - mine.l_discount)).sum()
    charged = mine.l_extendedprice * (1 - mine.l_discount) * (1 + mine.l_tax)
    assert row["sum_charge"] == charged.sum(), "decimals are exact"


def test_tpch_q3() -> None:
    rows, summary = run_sql("tpch_q3.sql")
    assert summary["rows_in"] == 90_000
    wanted = ("o_orderkey", "o_orderdate", "c_mktsegment")
    orders = generated("generator:orders?rows=30000", *wanted).to_pandas()
    wanted = ("l_orderkey", "l_shipdate", "l_extendedprice", "l_discount")
    lines = generated("generator:lineitem?rows=60000", *wanted).to_pandas()
    day = pd.Timestamp("1992-02-15", tz="UTC")
    orders = orders[(orders.c_mktsegment == "BUILDING") & (orders.o_orderdate < day)]
    shipped = lines.merge(orders, left_on="l_orderkey", right_on="o_orderkey")
    shipped["revenue"] = shipped.l_extendedprice * (1 - shipped.l_discount)
    found = list(windows(rows))
    assert [len(w) for w in found] == [10] * 4
    for window in found:
        revenue = inside(shipped, window[0], "l_shipdate").groupby("l_orderkey").revenue.sum()
        best = revenue.sort_values(ascending=False).head(10)
        assert [r["revenue"] for r in window] == best.tolist()
        assert [r["l_orderkey"] for r in window] == best.index.tolist()


def test_near_calls(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(run_python("near_calls.py", capsys))
    uri = "generator:calls?rows=2000&rate=100&keys=500"
    one, other = (generated(u, "ts", "src", "lat", "lon") for u in (uri, f"{uri}&seed=1"))
    at_one, at_other = (t["ts"].cast(pa.int64()).to_numpy() for t in (one, other))
    pairs = np.argwhere(abs(at_one[:, None] - at_other[None, :]) <= 1_000_000)
    left, right = one.take(pairs[:, 0]), other.take(pairs[:, 1])
    differ = np.array(left["src"].to_pylist()) != np.array(right["src"].to_pylist())
    expected = load("near_calls.py").near(left, right) & differ
    found = sorted((str(r["one"]), str(r["other"])) for r in rows)
    assert found == sorted(
        zip(left["src"].filter(expected).to_pylist(), right["src"].filter(expected).to_pylist())
    )
    assert len(found) > 10


def test_scalejoin_process(capsys: pytest.CaptureFixture[str]) -> None:
    said = run_python("scalejoin_process.py", capsys)
    count, _, rest = said.partition(" ")
    assert int(count.replace(",", "")) > 1_000
    assert rest == "pairs, those of the built-in join\n"


def test_scalejoin_columns(capsys: pytest.CaptureFixture[str]) -> None:
    said = run_python("scalejoin_columns.py", capsys)
    count, _, rest = said.partition(" ")
    assert int(count.replace(",", "")) > 10_000
    assert rest == "pairs, those of the built-in join\n"


def test_scalejoin_columns_goes_on_through_switches_and_restarts(tmp_path: Path) -> None:
    example, within = load("scalejoin_columns.py"), timedelta(milliseconds=300)
    session = tg.Session(master="none")
    columns = {"r": ("ts", "x", "y"), "s": ("ts", "a", "b")}
    rows = {
        n: generated(f"generator:{n}?rows=2000&rate=1000&domain=200", *columns[n]) for n in "rs"
    }
    found: list[pa.Table] = []
    for run, end in enumerate((700, 1_300, 2_000)):
        sources = {name: tg.MemorySource(rows[name].slice(0, end), time="ts") for name in "rs"}
        if end == 2_000:
            for source in sources.values():
                source.end()
        given = [session.stream(source, time="ts", name=name) for name, source in sources.items()]
        sink, switches = tg.sink.memory(), {2: 3, 4: 1}
        how = {"checkpoint": str(tmp_path), "available_now": end < 2_000, "switches": switches}
        own = example.own(*given, within).start(
            sink=sink, instances=1 + run, buckets=5, batch_rows=170, **how
        )
        assert own.wait().batches > 5
        found.append(sink.table())
    theirs = tg.sink.memory()
    example.built_in(*given, within).start(sink=theirs, method="scan").wait()
    assert pa.concat_tables(found).equals(theirs.table())
    assert theirs.table().num_rows > 5_000


def test_rescale_and_restart(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = run_python("rescale_and_restart.py", capsys).splitlines()
    assert first.startswith("stopped after batch ")
    assert first.endswith(" with 4 instances")
    assert second == "finished: 15,000 rows in"
    assert third == "the same rows as a quiet run"


def test_union_of_sources(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(run_python("union_of_sources.py", capsys))
    assert [r["fleet"] for r in rows] == ["green", "yellow"] * 2
    for green, yellow in windows(rows):
        assert yellow["rides"] == pytest.approx(2 * green["rides"], rel=0.1)
        assert 0 < green["share"] < 1


@pytest.mark.parametrize("name", files())
def test_an_example_says_what_it_shows_and_how_to_run_it(name: str) -> None:
    text = header(name)
    assert "Shows: " in text
    assert "Run: " in text
    assert f"examples/{name}" in text


def test_every_example_is_listed_and_tested() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in files():
        assert f"[{name}]({name})" in listed
        if name not in NEEDS_SPARK:
            assert f"test_{Path(name).stem}" in globals()
    assert len(files()) == len(re.findall(r"\| \[\w+\.(?:sql|py)\]", listed))
