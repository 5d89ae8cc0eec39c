"""Frames of pandas and polars, and Arrow tables, as sources: a type acts or is refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import OptionError, UserError
from tidegate.schema import TIME

TIMES = [dt.datetime(2024, 1, 1, 0, 0, second) for second in range(3)]
TEXTS = ["b", None, "a"]
DAYS = [dt.date(2024, 1, 1), None, dt.date(2024, 1, 2)]
DECIMALS = [Decimal("1.50"), None, Decimal("2.25")]


def of_pandas(values: object) -> pd.DataFrame:
    return pd.DataFrame({"ts": pd.to_datetime(TIMES), "v": values})


def of_polars(values: list[Any], type_: Any) -> pl.DataFrame:
    return pl.DataFrame({"ts": TIMES, "v": pl.Series(values, dtype=type_)})


def of_arrow(values: pa.Array) -> pa.Table:
    return pa.table({"ts": pa.array(TIMES), "v": values})


def typed(values: list[Any], type_: str) -> pd.DataFrame:
    return of_pandas(pd.Series(values, dtype=type_))


text = pa.array(TEXTS)
VALUES: dict[str, tuple[Callable[[], Any], pa.DataType, list[Any]]] = {
    "pandas objects": (lambda: of_pandas(TEXTS), pa.string(), TEXTS),
    "pandas NaN": (lambda: of_pandas(["b", np.nan, "a"]), pa.string(), TEXTS),
    "pandas string": (lambda: typed(TEXTS, "string"), pa.string(), TEXTS),
    "pandas of Arrow": (lambda: typed(TEXTS, "string[pyarrow]"), pa.string(), TEXTS),
    "pandas large": (lambda: typed(TEXTS, "large_string[pyarrow]"), pa.string(), TEXTS),
    "pandas category": (lambda: typed(TEXTS, "category"), pa.string(), TEXTS),
    "pandas Int64": (
        lambda: typed([1, None, 2**60 + 1], "Int64"),
        pa.int64(),
        [1, None, 2**60 + 1],
    ),
    "pandas UInt8": (lambda: typed([1, None, 2], "UInt8"), pa.int16(), [1, None, 2]),
    "pandas boolean": (
        lambda: typed([True, None, False], "boolean"),
        pa.bool_(),
        [True, None, False],
    ),
    "pandas dates": (lambda: of_pandas(DAYS), pa.date32(), DAYS),
    "pandas decimals": (lambda: of_pandas(DECIMALS), pa.decimal128(3, 2), DECIMALS),
    "pandas lists": (lambda: of_pandas([[1], None, []]), pa.list_(pa.int64()), [[1], None, []]),
    "polars String": (lambda: of_polars(TEXTS, pl.String), pa.string(), TEXTS),
    "polars Categorical": (lambda: of_polars(TEXTS, pl.Categorical), pa.string(), TEXTS),
    "polars Enum": (lambda: of_polars(TEXTS, pl.Enum(["b", "a"])), pa.string(), TEXTS),
    "polars Decimal": (
        lambda: of_polars(DECIMALS, pl.Decimal(10, 2)),
        pa.decimal128(10, 2),
        DECIMALS,
    ),
    "polars Binary": (
        lambda: of_polars([b"x", None, b""], pl.Binary),
        pa.binary(),
        [b"x", None, b""],
    ),
    "polars List": (
        lambda: of_polars([["a"], None, []], pl.List(pl.Categorical)),
        pa.list_(pa.string()),
        [["a"], None, []],
    ),
    "polars Array": (
        lambda: of_polars([[1, 2]] * 3, pl.Array(pl.Int8, 2)),
        pa.list_(pa.int8()),
        [[1, 2]] * 3,
    ),
    "polars Struct": (
        lambda: of_polars([{"a": "x"}] * 3, pl.Struct({"a": pl.String})),
        pa.struct([("a", pa.string())]),
        [{"a": "x"}] * 3,
    ),
    "string_view": (lambda: of_arrow(text.cast(pa.string_view())), pa.string(), TEXTS),
    "large_string": (lambda: of_arrow(text.cast(pa.large_string())), pa.string(), TEXTS),
    "binary_view": (
        lambda: of_arrow(text.cast(pa.binary()).cast(pa.binary_view())),
        pa.binary(),
        [b"b", None, b"a"],
    ),
    "dictionary": (lambda: of_arrow(text.dictionary_encode()), pa.string(), TEXTS),
    "run-end encoded": (
        lambda: of_arrow(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None])),
        pa.string(),
        ["a", "a", None],
    ),
    "list_view": (
        lambda: of_arrow(pa.array([["a"], None, []], pa.list_view(pa.string_view()))),
        pa.list_(pa.string()),
        [["a"], None, []],
    ),
    "uint64": (
        lambda: of_arrow(pa.array([2**64 - 1, None, 0], pa.uint64())),
        pa.decimal128(20, 0),
        [Decimal(2**64 - 1), None, Decimal(0)],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_column_of_any_type(name: str) -> None:
    make, type_, values = VALUES[name]
    found = tg.Session(master="none").stream(make()).to_arrow()
    assert found.schema.types[0] == TIME
    assert pa.types.is_struct(type_) or found.schema.field("v").type == type_
    assert found.column("v").to_pylist() == values


ADEN = "Asia/Aden"
AT = ["2024-01-01 00:00:00", "2024-01-01 00:00:01", "2024-01-01 00:00:02"]
STAMPS = pd.to_datetime(TIMES)
CLOCKS: dict[str, Callable[[], Any]] = {
    "pandas s": lambda: STAMPS.astype("datetime64[s]"),
    "pandas ms": lambda: STAMPS.astype("datetime64[ms]"),
    "pandas us": lambda: STAMPS.astype("datetime64[us]"),
    "pandas ns": lambda: STAMPS.astype("datetime64[ns]"),
    "pandas zone": lambda: STAMPS.tz_localize("UTC").tz_convert("America/New_York"),
    "pandas text": lambda: pd.Series(AT, dtype="string[pyarrow]"),
    "pandas category": lambda: pd.Categorical(AT),
    "polars ms": lambda: pl.Series(TIMES, dtype=pl.Datetime("ms")),
    "polars ns": lambda: pl.Series(TIMES, dtype=pl.Datetime("ns")),
    "polars zone": lambda: pl.Series(TIMES).dt.replace_time_zone("UTC").dt.convert_time_zone(ADEN),
    "polars text": lambda: pl.Series(AT),
    "Arrow s": lambda: pa.array(TIMES, pa.timestamp("s")),
    "Arrow ns": lambda: pa.array(TIMES, pa.timestamp("ns")),
    "Arrow views": lambda: pa.array(AT).cast(pa.string_view()),
    "Arrow dictionary": lambda: pa.array(TIMES).dictionary_encode(),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_times_of_any_unit(name: str) -> None:
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table}[name.split()[0]]
    found = tg.Session(master="none").stream(library({"ts": CLOCKS[name](), "v": [1, 2, 3]}))
    assert [str(t)[:19] for t in found.to_arrow().column("ts").to_pylist()] == AT


def test_the_time_may_be_the_index() -> None:
    index = pd.Index(pd.to_datetime(TIMES), name="ts")
    frame = pd.DataFrame({"v": [1, 2, 3]}, index=index)
    two = frame.set_index(pd.MultiIndex.from_arrays([[7, 8, 9], index], names=["k", "ts"]))
    session = tg.Session(master="none")
    assert session.stream(frame).to_arrow().column_names == ["ts", "v"]
    assert session.stream(frame, time="ts").to_arrow().column("v").to_pylist() == [1, 2, 3]
    assert session.stream(two).to_arrow().column_names == ["ts", "k", "v"]


def test_data_that_can_be_read_once_is_read_once() -> None:
    table = of_arrow(text)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert tg.Session(master="none").stream(reader).to_arrow().num_rows == 3


REFUSED = {
    "pandas period": (
        lambda: of_pandas(pd.period_range("2024-01", periods=3, freq="M")),
        "stream s: column v must have a type that Arrow has; got period[M]. Write "
        'frame["v"].dt.to_timestamp(), or .astype("string").',
    ),
    "pandas mixed": (
        lambda: of_pandas(["a", 1, None]),
        "stream s: the rows must make a table; got Expected bytes, got a 'int' object; Conversion "
        "failed for column v with type object. Give an Arrow table, a DataFrame, or a list of "
        "dictionaries with the same keys, and one type to each column.",
    ),
    "pandas twice": (
        lambda: pd.DataFrame([[1, 2]], columns=["v", "v"]),
        "stream s: column names must be distinct; got v more than once. Rename the columns.",
    ),
    "polars Series": (
        lambda: pl.Series([1]),
        "stream s: the rows must make a table; got a Series, which is one column. Give an Arrow "
        "table, a DataFrame, or a list of dictionaries with the same keys, and one type to each "
        "column.",
    ),
    "polars Object": (
        lambda: of_polars([object()] * 3, pl.Object),
        "stream s: column v must have a type that Arrow has; got Object. Cast it, as to "
        "Decimal(38, 0) or String.",
    ),
    "polars Int128": (
        lambda: of_polars([1, 2, 3], pl.Int128),
        "stream s: column v must have a type that Arrow has; got Int128. Cast it, as to "
        "Decimal(38, 0) or String.",
    ),
    "polars LazyFrame": (
        lambda: of_polars([1, 2, 3], pl.Int8).lazy(),
        "stream s: a source must be a path, a URI, a memory source, a DataFrame or a table; got "
        "LazyFrame. Write frame.collect().",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(OptionError if "twice" not in name else UserError) as refused:
        tg.Session(master="none").stream(make(), time="ts", name="s")
    assert str(refused.value) == message
