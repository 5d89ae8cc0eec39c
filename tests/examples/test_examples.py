"""Every example runs without Spark and gives what it says; the one that needs it: tests/spark."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.examples.example import FOLDER, NEEDS_SPARK, files, header, load
from tidegate.cli.main import invoke
from tidegate.source.uri import open_uri

Row = dict[str, Any]


def run_sql(name: str, *options: str) -> tuple[list[Row], Row]:
    """The rows of an example's output and its summary."""
    path, summary = str(FOLDER / name), Path("summary.json")
    shared = ["--master", "none", "--out", "out", "--summary", str(summary)]
    assert invoke(["run", path, *shared, *options]) == 0
    table = pq.read_table(sorted(Path("out").glob("batch=*/*.parquet")), partitioning=None)
    return table.to_pylist(), json.loads(summary.read_text())


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
    assert summary["rows_in"] == 10_000, "a self-join reads its stream for either side"
    assert 1_000 < len(rows) == summary["rows_out"]
    assert all(r["one"] < r["other"] for r in rows)
    assert [r["ts"] for r in rows] == sorted(r["ts"] for r in rows)


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
    assert len(files()) == listed.count("| [")
