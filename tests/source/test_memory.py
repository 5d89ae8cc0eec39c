from __future__ import annotations

import pickle
import threading
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.source.check import check_times, read_range
from tidegate.errors import SourceError
from tidegate.schema import TIME
from tidegate.source.memory import MemorySource

SCHEMA = pa.schema([("t", TIME), ("i", pa.int64())])


def row(i: int) -> dict[str, object]:
    return {"t": datetime(2024, 1, 1, 0, 0, i % 60, tzinfo=UTC), "i": i}


@given(st.lists(st.integers(0, 4), max_size=6), st.data())
def test_any_range_equals_a_slice_of_what_was_appended(
    sizes: list[int], data: st.DataObject
) -> None:
    source = MemorySource(time="t", schema=SCHEMA)
    rows: list[dict[str, object]] = []
    for size in sizes:
        more = [row(len(rows) + k) for k in range(size)]
        source.append(pa.Table.from_pylist(more, SCHEMA) if size % 2 else more)
        rows += more
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert source.extend(1) == len(rows)
    assert read_range(source, start, stop) == rows[start:stop]
    check_times(source, "t", list(rows), start, stop)  # type: ignore[arg-type]


def test_rows_that_come_before_the_end_are_seen_before_it() -> None:
    source = MemorySource([row(0)], time="t")
    assert source.extend(1) == 1
    source.append([row(1)])
    source.end()
    assert not source.ended()
    assert not source.live()
    assert source.extend(2) == 2
    assert source.ended()


def test_a_pickled_reader_carries_its_own_rows_only() -> None:
    source = MemorySource([row(i) for i in range(100_000)], time="t")
    source.extend(1)
    assert len(pickle.dumps(source.reader(5, 10))) < 5_000


def test_naive_times_are_utc_and_lacking_keys_are_null() -> None:
    source = MemorySource([{"t": datetime(1970, 1, 1, 0, 0, 1), "i": 1}], time="t")
    source.append([{"t": datetime(1970, 1, 1, 0, 0, 2)}])
    assert source.extend(1) == 2
    assert source.times(0, 2)[0].tolist() == [1_000_000, 2_000_000]
    assert source.reader(1, 2).read(["i"]).table.to_pylist() == [{"i": None}]


def test_appends_from_threads_are_all_kept() -> None:
    source = MemorySource(time="t", schema=SCHEMA)

    def work() -> None:
        for i in range(50):
            source.append([row(i), row(i)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.extend(1) == 400
    found = source.reader(0, 400).read(["i"]).table.column("i").to_pylist()
    assert found[0::2] == found[1::2]


def test_what_is_refused() -> None:
    with pytest.raises(SourceError, match="the columns must be known"):
        _ = MemorySource(time="t").schema
    with pytest.raises(SourceError, match="the time column must be there"):
        MemorySource([{"u": 1}], time="t")
    source = MemorySource([row(0)], time="t")
    with pytest.raises(SourceError, match="rows must fit"):
        source.append([{"t": row(1)["t"], "i": "one"}])
    with pytest.raises(SourceError, match="got column j"):
        source.append([{**row(1), "j": 1}])
    with pytest.raises(SourceError, match="rows without i"):
        source.append(pa.table({"t": pa.array([1], TIME)}))
    source.end()
    with pytest.raises(SourceError, match="rows after it"):
        source.append([row(1)])
    assert source.extend(9) == 1
