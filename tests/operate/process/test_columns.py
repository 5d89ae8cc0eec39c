"""State by column: beside a plain list, through any operations and batches; what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.operate.process.test_state import Bucket
from tests.oracle.process import Clock, PlainColumns
from tidegate.batch import MIN_US
from tidegate.operate.process import columns
from tidegate.operate.process.segment_rows import StoredState


def rows(start_us: int, values: Sequence[int]) -> dict[str, Any]:
    """Rows a microsecond apart."""
    ts = np.arange(start_us, start_us + len(values)).astype("M8[us]")
    return {"ts": ts, "v": np.array(values, np.int64)}


def declared(ttl_us: int | None) -> Any:
    ttl = None if ttl_us is None else timedelta(microseconds=ttl_us)
    return lambda made: vars(made).update(x=made.state.columns("x", {"v": "bigint"}, ttl))


class BesideList(RuleBasedStateMachine):
    """Columns that are stored and read in every batch, and a list that is never."""

    @initialize(ttl_us=st.none() | st.integers(1, 30), most=st.sampled_from([4, 16, 4096]))
    def start(self, ttl_us: int | None, most: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(columns, "_CHUNK_ROWS", most)
        self.clock = Clock(3, 5)
        self.plain = PlainColumns(self.clock, ttl_us)
        self.bucket = Bucket(declared(ttl_us))

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    @rule(values=st.lists(st.integers(0, 9), max_size=8))
    def append(self, values: list[int]) -> None:
        made = rows(self.clock.now_us, values)
        self.plain.append(made)
        self.bucket.object.x.append(made)
        self.pass_time(len(values))

    @rule(us=st.integers(0, 9))
    def pass_time(self, us: int) -> None:
        self.clock.now_us += us
        self.bucket.now_us = self.clock.now_us

    @rule()
    def clear(self) -> None:
        self.plain.clear()
        self.bucket.object.x.clear()

    @rule(merge=st.integers(0, 5))
    def commit(self, merge: int) -> None:
        self.bucket.commit(merge)

    @rule()
    def read(self) -> None:
        x = self.bucket.object.x
        assert len(x) == len(self.plain)
        assert x["v"].tolist() == self.plain["v"]
        assert list(x["ts"]) == self.plain["ts"]


TestBesideList = BesideList.TestCase


def test_a_batch_writes_what_it_appended_and_chunks_stay_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_CHUNK_ROWS", 256)
    bucket, written, batches, row_bytes = Bucket(declared(None)), [], 400, 16
    for batch in range(batches):
        bucket.object.x.append(rows(10 * batch, range(10)))
        bucket.commit(merge=2)
        written.append(sum(map(len, bucket.layers[-1]["value"].to_pylist())))
    head_bytes = min(written)
    assert sum(written) < batches * (10 * row_bytes * (1 + np.log2(256 / 10)) + head_bytes)
    assert max(written) < 256 * row_bytes + head_bytes, "however much there is"
    assert sum(written[-64:]) < 1.1 * sum(written[64:128])
    stored = StoredState(bucket.layers, [1, 3]).bucket(3).load(b"x:")
    assert len(stored) < 10 * batches / 128 + 8
    assert bucket.object.x["v"].tolist() == list(range(10)) * batches


def test_what_has_expired_is_neither_kept_nor_written_again() -> None:
    bucket = Bucket(declared(20))
    for batch in range(200):
        bucket.now_us = 10 * batch
        bucket.object.x.append(rows(10 * batch, range(10)))
        assert len(bucket.object.x) <= 30
        held = bucket.object.x._held
        assert held.nbytes < 16 * 200
        bucket.commit(merge=len(bucket.layers))
    assert sum(layer.num_rows for layer in bucket.layers) < 10


def test_nothing_is_read_and_written_of_columns_that_are_not_used() -> None:
    bucket = Bucket(declared(None))
    bucket.object.x.append(rows(0, [1, 2]))
    assert bucket.commit() == ["head", "x:1"]
    assert bucket.commit() == []
    assert len(bucket.object.x) == 2
    assert bucket.commit() == []
    bucket.object.x.clear()
    assert bucket.commit() == ["gone x:1"]
    assert len(bucket.object.x) == 0


def test_arrays_that_were_given_out_stay_as_they_are_and_cannot_be_written() -> None:
    bucket = Bucket(declared(5))
    bucket.object.x.append(rows(0, range(60)))
    before = bucket.object.x["v"]
    bucket.now_us = 50
    bucket.object.x.append(rows(60, range(60)))
    assert before.tolist() == list(range(60))
    assert bucket.object.x["v"].tolist() == [*range(46, 60), *range(60)]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1


def test_types_come_back_as_they_were() -> None:
    types = {
        "tinyint": [1, -1],
        "smallint": [2, 3],
        "INT": [4, 5],
        "bigint": [2**60, 7],
        "float": [0.5, float("nan")],
        "double": [0.1, float("inf")],
        "boolean": [True, False],
        "date": [datetime(2024, 1, 1).date(), datetime(1, 1, 1).date()],
        "timestamp": [datetime(2024, 1, 1), datetime(9999, 1, 1)],
    }
    names = {f"c{i}": type_ for i, type_ in enumerate(types)}
    bucket = Bucket(lambda made: vars(made).update(x=made.state.columns("x", names)))
    given = {f"c{i}": values for i, values in enumerate(types.values())}
    bucket.object.x.append({"ts": np.zeros(2, "M8[us]"), **given})
    before = {name: bucket.object.x[name] for name in given}
    bucket.commit()
    for name, values in given.items():
        found = bucket.object.x[name]
        assert found.dtype == before[name].dtype
        np.testing.assert_array_equal(found, before[name])
        np.testing.assert_array_equal(found, np.array(values, found.dtype))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ts": [0]}, "state x: append needs ts, v; got ts"),
        (
            {"ts": [1, 2], "v": [1]},
            "state x: append needs as many values of each column; got 2 of ts, 1 of v",
        ),
        (
            {"ts": [2, 1], "v": [1, 2]},
            "state x: append needs rows in the order of ts; got an earlier one later",
        ),
        (
            {"ts": [0], "v": [1]},
            "state x: append needs rows in the order of ts; got an earlier one later",
        ),
        ({"ts": [1], "v": [None]}, "state x: append needs no NULL in v; got 1"),
        ({"ts": np.array(["NaT"], "M8[us]"), "v": [1]}, "append needs no NULL in ts; got 1"),
        ({"ts": [1], "v": ["a"]}, "state x: append needs bigint as v; got Failed to parse"),
    ],
)
def test_mistakes(given: dict[str, Any], message: str) -> None:
    bucket = Bucket(declared(None))
    bucket.object.x.append(rows(1, [1]))
    with pytest.raises(ValueError, match=message):
        bucket.object.x.append(given)
    with pytest.raises(KeyError, match="state x has no column w; there are ts, v"):
        bucket.object.x["w"]
    assert bucket.object.x["v"].tolist() == [1]


def test_a_time_to_live_may_reach_beyond_the_first_time_there_is() -> None:
    bucket = Bucket(declared(5))
    bucket.now_us = MIN_US + 2
    bucket.object.x.append(rows(MIN_US + 2, [1, 2]))
    assert bucket.object.x["v"].tolist() == [1, 2]
    bucket.commit()
    assert bucket.object.x["v"].tolist() == [1, 2]


def test_columns_are_not_there_before_the_object_is_at_work() -> None:
    made: Any = type("Made", (), {})()
    made.x = columns.ColumnsState("x", pa.schema([("v", pa.int64())]), None)
    with pytest.raises(RuntimeError, match="when the object is at work, not in __init__"):
        len(made.x)
    assert repr(made.x) == "<columns x (ts timestamp, v bigint)>"
