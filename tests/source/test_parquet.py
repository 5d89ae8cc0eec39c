from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.check import check_times, fresh, read_range
from tidegate.connector import Source
from tidegate.errors import GateError, SourceError
from tidegate.schema import TIME
from tidegate.source.files import FilesConnector
from tidegate.source.parquet import ParquetFormat
from tidegate.source.piece import PIECES


def opened(path: Path, table: pa.Table, time: str | None = "t", group: int = 7) -> Source:
    pq.write_table(table, path, row_group_size=group)
    (source,) = FilesConnector(str(path), str(path), time).discover()
    return source


def table_of(rows: int) -> pa.Table:
    times = pa.array(np.arange(rows) * 1000, pa.timestamp("us", "UTC"))
    return pa.table({"t": times, "i": pa.array(range(rows), pa.int32()), "s": ["x"] * rows})


moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
rows = st.lists(
    st.fixed_dictionaries(
        {"t": st.none() | moments, "i": st.none() | st.integers(-9, 9), "s": st.none() | st.text()}
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(st.data(), rows, st.integers(1, 10))
def test_any_range_equals_a_slice_of_the_rows(
    folder: Path, data: st.DataObject, rows: list[dict[str, object]], group: int
) -> None:
    schema = pa.schema([("t", TIME), ("i", pa.int64()), ("s", pa.string())])
    table = pa.Table.from_pylist(rows, schema)
    source = opened(fresh(folder, "a.parquet"), table, group=group)
    assert source.extend(1) == len(rows)
    assert source.ended()
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert read_range(source, start, stop) == rows[start:stop]
    check_times(source, "t", list(rows), start, stop)  # type: ignore[arg-type]


def test_types_are_normalised(tmp_path: Path) -> None:
    table = pa.table(
        {
            "t": pa.array([1_500], pa.timestamp("ns")),
            "z": pa.array([1], pa.timestamp("s", "Europe/Berlin")),
            "d": pa.array(["a"]).dictionary_encode(),
            "l": pa.array(["b"], pa.large_string()),
            "n": pa.nulls(1),
            "i": pa.array([1], pa.int8()),
        }
    )
    source = opened(tmp_path / "a.parquet", table)
    assert source.schema.types == [TIME, TIME, pa.string(), pa.string(), pa.string(), pa.int8()]
    row = source.reader(0, 1).read(["i", "t", "z", "d", "l", "n"]).table
    assert row.column_names == ["i", "t", "z", "d", "l", "n"]
    assert row.column("t").cast(pa.int64()).to_pylist() == [1]
    assert row.column("z").cast(pa.int64()).to_pylist() == [1_000_000]
    assert source.times(0, 1)[0].tolist() == [1]


def test_dates_are_times(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.parquet", pa.table({"t": [date(1970, 1, 2), None]}))
    numbers, valid = source.times(0, 2)
    assert numbers.tolist() == [86_400_000_000, 0]
    assert valid.tolist() == [True, False]


def test_a_row_group_is_decoded_once_for_many_small_batches(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.parquet", table_of(3000), group=1500)
    before = PIECES.loads
    for start in range(0, 3000, 10):
        reader = pickle.loads(pickle.dumps(source.reader(start, start + 10)))
        assert reader.read(["i"]).table.column("i").to_pylist() == list(range(start, start + 10))
    assert PIECES.loads == before + 2


def test_times_read_only_the_time_column_of_the_groups_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, list[str]]] = []
    decode = ParquetFormat.decode

    def spy(
        self: ParquetFormat, path: str, version: Any, number: int, schema: pa.Schema, time: Any
    ) -> pa.Table:
        asked.append((number, schema.names))
        return decode(self, path, version, number, schema, time)

    monkeypatch.setattr(ParquetFormat, "decode", spy)
    source = opened(tmp_path / "a.parquet", table_of(100), group=10)
    source.times(12, 15)
    source.times(15, 20)
    source.times(20, 22)
    assert asked == [(1, ["t"]), (2, ["t"])]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(
        SourceError, match=r"a\.parquet: the file must be a whole, readable Parquet"
    ):
        FilesConnector(str(path), str(path), "t")
    opened(path, table_of(5000), group=5000)
    data = bytearray(path.read_bytes())
    data[10:2000] = bytes(1990)
    path.write_bytes(data)
    (source,) = FilesConnector(str(path), str(path), "t").discover()
    with pytest.raises(SourceError, match="readable Parquet file"):
        source.reader(0, 10).read(["t", "i"])


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    source = opened(path, table_of(10))
    opened(path, table_of(11))
    with pytest.raises(GateError, match="must not change"):
        source.reader(0, 10).read(["i"])


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("when", "got column when. Columns with times are: t."),
        ("i", "time column i must be a timestamp or a date; got int."),
    ],
)
def test_a_wrong_time_column_is_refused(tmp_path: Path, time: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        opened(tmp_path / "a.parquet", table_of(1), time)
    assert message in str(raised.value)
