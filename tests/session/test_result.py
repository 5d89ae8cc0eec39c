"""Whole results as tables: those of a run, in its order; what does not end or fit is refused."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import count, left, right
from tidegate.errors import NoAttributeError, UnavailableError
from tidegate.schema import TIME


def stream(rows: int = 25_000, name: str = "s") -> tg.Stream:
    numbers = pa.array(range(rows))
    times = pa.array([i * 1_000_000 for i in range(rows)]).cast(TIME)
    table = pa.table({"ts": times, "v": numbers, "k": pa.array([i % 3 for i in range(rows)])})
    return tg.Session(master="none").stream(table, name=name)


def test_all_rows_in_the_order_of_a_run() -> None:
    session = tg.Session(master="none")
    table = stream(700).to_arrow()
    s, t = session.stream(table, name="s"), session.stream(table.select(["ts", "v"]), name="t")
    pairs = s.join(t, within="3 seconds", on=(left.v % 7) == (right.v % 7))
    made = pairs.select("k", v=left.v, w=right.v)
    sink = tg.sink.memory()
    made.start(sink=sink, batch_rows=17).wait()
    assert made.to_arrow() == sink.table()
    assert made.to_arrow().num_rows == 700
    assert made.to_pandas().equals(sink.table().to_pandas())
    assert made.to_polars().equals(pl.from_arrow(sink.table()))


def test_windows_are_finished_and_a_limit_ends_it() -> None:
    counts = stream().window("1 hour").agg(n=count())
    assert counts.to_arrow().column("n").to_pylist() == [3600] * 6 + [3400]
    assert stream().limit(3).to_pandas()["v"].tolist() == [0, 1, 2]


def test_of_files_too(tmp_path: Path) -> None:
    stream(10).to_pandas().to_parquet(tmp_path / "s.parquet")
    made = tg.Session(master="none").sql(f"""
        CREATE STREAM s FROM '{tmp_path}/s.parquet'; SELECT v FROM s WHERE v > 7""")
    assert made.to_polars()["v"].to_list() == [8, 9]


def test_whole_numbers_with_nulls_keep_their_digits() -> None:
    rows = pa.table(
        {
            "ts": pa.array([1, 2]).cast(TIME),
            "n": [2**60 + 1, None],
            "b": [None, True],
            "f": [1.5, None],
        }
    )
    frame = tg.Session(master="none").stream(rows).to_pandas()
    assert [str(t) for t in frame.dtypes[1:]] == ["Int64", "boolean", "float64"]
    assert frame["n"][0] == 2**60 + 1
    assert frame["n"].isna().tolist() == [False, True]
    assert isinstance(frame.index, pd.RangeIndex)


@pytest.mark.parametrize("method", ["to_arrow", "to_pandas", "to_polars"])
def test_what_goes_on_is_refused(method: str) -> None:
    source = tg.MemorySource([{"ts": datetime(2024, 1, 1)}], time="ts")
    going_on = tg.Session(master="none").stream(source, name="live")
    with pytest.raises(UnavailableError) as refused:
        getattr(going_on, method)()
    assert str(refused.value) == (
        f"{method}: needs input that ends; got stream live, which goes on. Write .preview(10) for "
        "the first rows, or .start(sink=tg.sink.memory()). A memory source ends with its method "
        "end()."
    )
    source.end()
    assert len(getattr(going_on, method)()) == 1


def test_a_generator_with_a_pace_is_refused() -> None:
    made = tg.Session(master="none").stream("generator:taxi?rows=10&pace=10", time="dropoff_time")
    with pytest.raises(UnavailableError, match="needs input that ends"):
        made.to_arrow()


def test_a_result_that_does_not_fit_is_refused() -> None:
    text = """
import tidegate as tg
rows = tg.Session(master="none").stream("generator:taxi?rows=4000000", time="dropoff_time")
try:
    rows.to_arrow(memory_limit="256MB")
except tg.TidegateError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        "MemoryExceededError to_arrow: the result must fit into memory; got "
    )
    assert done.stdout.rstrip().endswith(
        ' MB are allowed. Write .start(sink="out") for rows in files, .preview(1000) for the first '
        'ones, or give a larger memory_limit, as "8GB".'
    )


def test_without_polars_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UnavailableError) as refused:
        stream(1).to_polars()
    assert str(refused.value) == (
        "to_polars: needs polars; got none. Run pip install 'tidegate[polars]'."
    )


def test_names_of_other_libraries_lead_here() -> None:
    for name in ("collect", "toPandas", "toArrow"):
        with pytest.raises(NoAttributeError, match=r"Write \.to_pandas\(\), \.to_polars\(\) or"):
            getattr(stream(1), name)
