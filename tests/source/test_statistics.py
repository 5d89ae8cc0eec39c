"""What footers say of times: never above what the rows have, and nothing where rows lack one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.check import fresh
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import SourceError
from tidegate.source import parquet
from tidegate.source.columnar import ColumnarSource
from tidegate.source.files import FilesConnector

TYPES = [pa.timestamp(u, z) for u in ("s", "ms", "us", "ns") for z in (None, "UTC")]
WIDE = st.integers(-(2**62), 2**62)
NEAR = st.integers(-(10**6), 10**6)


def source_of(path: Path, times: pa.Array, group: int = 3, **options: object) -> ColumnarSource:
    pq.write_table(
        pa.table({"x": [1] * len(times), "t": times}), path, row_group_size=group, **options
    )
    connector = FilesConnector(str(path), str(path), "t")
    (source,) = connector.discover()
    assert isinstance(source, ColumnarSource)
    return source


@settings(max_examples=max(60, settings().max_examples))
@given(
    st.sampled_from([*TYPES, pa.date32()]),
    st.lists(st.none() | NEAR | WIDE, min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_no_time_of_a_row_group_is_below_its_bound(
    folder: Path, type_: pa.DataType, numbers: list[int | None], group: int
) -> None:
    if pa.types.is_date(type_):
        numbers = [None if n is None else n % 20_000 for n in numbers]
        times = pa.array(numbers, pa.int32()).cast(type_)
    elif type_.unit == "s":  # stored as milliseconds, which must hold them
        numbers = [None if n is None else n // 1000 for n in numbers]
        times = pa.array(numbers, pa.int64()).cast(type_)
    else:
        times = pa.array(numbers, pa.int64()).cast(type_)
    source = source_of(fresh(folder, "a.parquet"), times, group)
    for start in range(0, len(numbers), group):
        stop = min(start + group, len(numbers))
        assert source.piece_end(start) == source.piece_end(stop - 1) == stop
        found, valid = source.times(start, stop)
        low_us = source.low_us(start)
        if not valid.all():
            assert low_us == MIN_US
        assert low_us <= found.min()


@pytest.mark.parametrize("type_", TYPES)
def test_the_bound_is_the_least_time(tmp_path: Path, type_: pa.DataType) -> None:
    times = pa.array([5, 3, 4, 9, 8, 7], pa.int64()).cast(type_)
    source = source_of(tmp_path / "a.parquet", times)
    found, _ = source.times(0, 6)
    assert [source.low_us(0), source.low_us(3)] == [found[:3].min(), found[3:].min()]


def test_statistics_may_be_absent(tmp_path: Path) -> None:
    times = pa.array([5, 3], pa.timestamp("us"))
    assert source_of(tmp_path / "a.parquet", times, write_statistics=False).low_us(0) == MIN_US
    old = source_of(tmp_path / "b.parquet", times, use_deprecated_int96_timestamps=True)
    assert old.low_us(0) == MIN_US
    assert old.times(0, 2)[0].tolist() == [5, 3]


def test_times_that_do_not_fit_have_no_bound(tmp_path: Path) -> None:
    """Cast to microseconds they wrap around, to less than the least of those that fit."""
    times = pa.array([1, 2**62], pa.timestamp("ms"))
    source = source_of(tmp_path / "a.parquet", times)
    assert source.low_us(0) == MIN_US
    assert source.times(0, 2)[0].min() <= 1000


def test_a_nested_column_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = pa.array([7], pa.timestamp("us"))
    pq.write_table(pa.table({"s": [{"t": 1}], "t": times}), path)
    assert parquet.least_times(pq.read_metadata(path), "t") == [7]
    assert parquet.least_times(pq.read_metadata(path), "s") == [MIN_US]
    assert parquet.least_times(pq.read_metadata(path), None) == [MIN_US]


def test_statistics_that_are_wrong_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "least_times", lambda metadata, time: [4])
    source = source_of(tmp_path / "a.parquet", pa.array([5, 3], pa.timestamp("us")))
    with pytest.raises(SourceError) as raised:
        source.times(0, 1)
    assert str(raised.value) == (
        f"{tmp_path}/a.parquet: no time in row group 0 must be below its statistics' 4 us; "
        "got 3 us. Write it again, with statistics that are true or with none."
    )


def test_what_is_listed_of_a_folder(tmp_path: Path) -> None:
    for name, times in {"a": [9, 5], "b": [], "c": [None, 1], "d": [7]}.items():
        column = pa.array(times, pa.timestamp("us"))
        pq.write_table(pa.table({"t": column}), tmp_path / f"{name}.parquet")
    connector = FilesConnector(str(tmp_path), "s", "t")
    found = connector.list_new()
    assert [(Path(f.id).stem, f.low_us, f.extent) for f in found] == [
        ("a", 5, 2),
        ("b", MAX_US, 0),
        ("c", MIN_US, 2),
        ("d", 7, 1),
    ]
    assert connector.list_new() == []
