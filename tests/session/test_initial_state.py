"""Processes that begin with the rows of a table: any batches, instances, switches and restarts."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.oracle.process import process as plain
from tests.session.test_process import (
    BUCKETS,
    SCHEMA,
    SOURCE,
    SOURCES,
    SWITCHES,
    Source,
    bucket,
    ran,
    stream_of,
    table_of,
)
from tidegate.errors import CheckpointError, QueryError, SourceError, TaskError
from tidegate.operate.process.definition import CALLS
from tidegate.operate.process.initial import InitialIndex
from tidegate.schema import TIME

US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Accounts(tg.Process):
    """Balances that begin with those of a table, the last values of 9 us, and who was told of."""

    output = {"key": "string", "balance": "bigint", "last": "bigint", "known": "string"}  # noqa: RUF012

    def __init__(self) -> None:
        self.balance = self.state.map("balance")
        self.last = self.state.map("last", ttl="9 us")
        self.tags = self.state.map("tags")

    def on_tuple(self, tuple: Any, keys: list[str | None]) -> Iterator[dict[str, Any]]:
        for key in keys:
            if tuple.v == 0:
                self.balance.pop(key, None)
            elif tuple.v is not None:
                self.balance[key] = self.balance.get(key, 0) + tuple.v
                self.last[key] = tuple.v
                self.tags.setdefault(key, []).append(tuple.v)
            known = ",".join(f"{k}{v}" for k, v in self.balance.items())
            tags = "".join(map(str, self.tags.get(key, ())))
            yield {
                "key": key,
                "balance": self.balance.get(key),
                "last": self.last.get(key),
                "known": f"{known} {tags}",
            }
        self.wake(tuple.ts + 5 * US)

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        yield {"key": None, "balance": len(self.last), "last": None, "known": str([*self.last])}


ROWS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "never", None]),
    st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(-12, 0)),
).map(lambda rows: [{"key": k, "balance": b, "last": v, "ts": t} for k, (b, v, t) in rows.items()])
Rows = list[dict[str, Any]]


def frame(rows: Rows) -> pa.Table:
    columns = {
        "key": pa.array([r["key"] for r in rows], pa.string()),
        "balance": pa.array([r["balance"] for r in rows], pa.int64()),
        "last": pa.array([r["last"] for r in rows], pa.int64()),
        "ts": pa.array([r["ts"] for r in rows], pa.int64()).cast(TIME),
        "tags": pa.array([[7] for _ in rows], pa.list_(pa.int64())),
    }
    return pa.table(columns)


def table(rows: Any, **more: Any) -> Any:
    return tg.Session(master="none").table(rows, name="accounts", **more)


def expected(sources: list[Source], rows: Rows) -> list[tuple[Any, ...]]:
    tuples = [
        {"ts": ts, "src": src, "seq": seq, "k": k, "v": v}
        for src, source in enumerate(sources)
        for seq, (ts, k, v) in enumerate(source)
    ]
    names, keys = list(Accounts.output), lambda r: list(dict.fromkeys(r["k"] or ()))
    first = [{**row, "tags": [7]} for row in rows]
    return plain(Accounts, names, tuples, keys, bucket, BUCKETS, CALLS, first)


@given(SOURCES, ROWS, st.integers(1, 12), st.integers(1, 4), SWITCHES)
def test_the_rows_do_not_depend_on_how_it_runs(
    sources: list[Source], rows: Rows, batch_rows: int, instances: int, switches: dict[int, int]
) -> None:
    stream = stream_of(sources).process(Accounts, keys="k", initial=table(frame(rows)))
    found = ran(stream, batch_rows=batch_rows, instances=instances, switches=switches)
    assert found == expected(sources, rows)


@settings(max_examples=10)
@given(
    SOURCE,
    ROWS,
    st.lists(st.integers(0, 20), max_size=3).map(sorted),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 12),
)
def test_the_rows_do_not_depend_on_restarts(
    source: Source, rows: Rows, ends: list[int], instances: list[int], batch_rows: int
) -> None:
    """Each run takes the rows up to a place. Once there is a batch, another table is given."""
    found: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for run, end in enumerate([*ends, len(source)]):
            memory = tg.MemorySource(table_of(source[:end]), time="ts", schema=SCHEMA)
            ended = run == len(ends)
            if ended:
                memory.end()
            stream = tg.Session(master="none").stream(memory, time="ts", name="s")
            given = frame([] if any(ends[:run]) else rows)
            found += ran(
                stream.process(Accounts, keys="k", initial=table(given)),
                checkpoint=folder,
                instances=instances[run % len(instances)],
                batch_rows=batch_rows,
                available_now=not ended,
            )
    assert found == expected([source], rows)


# --- what a table may be -----------------------------------------------------------------------

VISITS: Source = [(i, ["a", "b"], 1) for i in range(3)]


class Sums(tg.Process):
    """The sum of the values of a key."""

    output = {"n": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.sums = self.state.map("sums")
        self.calls = self.state.value("calls")

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[tuple[int]]:
        for key in keys:
            self.sums[key] = self.sums.get(key, 0) + tuple.v
            yield (self.sums[key],)


def sums(keys: Any, initial: Any) -> list[int]:
    columns = [{"ts": EPOCH + ts * US, "k": k, "first": "a", "v": v} for ts, k, v in VISITS]
    stream = tg.Session(master="none").stream(columns, time="ts", name="s")
    found = ran(stream.with_columns(minus=-tg.col("v")).process(Sums, keys=keys, initial=initial))
    return [row[1] for row in found]


def first_of(tuples: pa.Table) -> pa.Array:
    return pa.array([k[0] for k in tuples["k"].to_pylist()], pa.string())


def test_a_table_may_be_a_file_or_a_frame_and_its_key_that_of_the_process(tmp_path: Path) -> None:
    rows = pa.table({"first": ["zz", "a"], "sums": [5, 10]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("First,sums\na,10\n")
    given = [rows, rows.to_pandas(), tmp_path / "rows.parquet", str(tmp_path / "rows.csv")]
    given += [[{"first": "a", "sums": 10}], pd.DataFrame({"sums": [10], "first": ["a"]})]
    for source in given:
        assert sums("first", table(source)) == [11, 12, 13]
    both = table({"first": ["a", "a"], "minus": [1, -1], "sums": [100, 20]})
    assert sums(["first", "minus"], both) == [21, 22, 23]
    listed = table({"key": ["b"], "sums": [40]})
    assert sums("k", listed) in ([1, 41, 2, 42, 3, 43], [41, 1, 42, 2, 43, 3])
    assert sums(first_of, table({"key": ["a"], "sums": [30]})) == [31, 32, 33]
    assert sums("v", table({"v": pa.array([1], pa.int8()), "sums": [50]})) == [51, 52, 53]


def test_explain_tells_of_it() -> None:
    told = stream_of([VISITS]).process(Accounts, keys="k", initial=table(frame([]))).explain()
    assert (
        "initial state: a key begins with balance, last, tags of table accounts by key, set at ts"
        in told
    )
    assert "accounts: given as rows, 0 rows" in told


def test_keys_that_never_come_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    key = InitialIndex.key

    def counted(self: InitialIndex, row: int) -> Any:
        looked.append(row)
        return key(self, row)

    monkeypatch.setattr(InitialIndex, "key", counted)
    many = pa.table({"first": ["a", *map(str, range(5000))], "sums": range(5001)})
    assert sums("first", table(many)) == [1, 2, 3]
    assert set(looked) == {0}


# --- the checkpoint ----------------------------------------------------------------------------


def followed(folder: Path, rows: Any, source: Source, **options: Any) -> list[tuple[Any, ...]]:
    memory = tg.MemorySource(table_of(source), time="ts", schema=SCHEMA)
    stream = tg.Session(master="none").stream(memory, time="ts", name="s")
    made = stream.process(Accounts, keys="k", initial=None if rows is None else table(rows))
    return ran(made, checkpoint=str(folder), available_now=True, **options)


def test_a_restart_goes_on_with_what_was_read_first_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = frame([{"key": "a", "balance": 50, "last": None, "ts": 0}])
    followed(tmp_path, first, VISITS[:1])
    other = frame([{"key": "a", "balance": 9, "last": None, "ts": 0}])
    with caplog.at_level(logging.WARNING):
        found = followed(tmp_path, other, [*VISITS, (9, ["a"], 0), (10, ["a"], 2), (20, ["a"], 0)])
    assert "table accounts has changed since it was read" in caplog.text
    balances = [row[2] for row in found if row[1] == "a"]
    assert balances[-3:] == [53, None, 2], "what was removed does not come back"


@pytest.mark.parametrize("before", [True, False])
def test_with_a_table_it_is_another_query(before: bool, tmp_path: Path) -> None:
    rows = [frame([]), None] if before else [None, frame([])]
    followed(tmp_path, rows[0], VISITS)
    with pytest.raises(CheckpointError, match="initial table accounts"):
        followed(tmp_path, rows[1], VISITS)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "rows", "said"),
    [
        ("first", {"sums": [1]}, "table accounts must have the key first; got only sums"),
        ("k", {"k": ["a"], "sums": [1]}, "table accounts must have the key key; got only k, sums"),
        ("first", {"first": [1], "sums": [1]}, "must be of the type string, as in the stream; got"),
        ("first", {"first": ["a"], "sum": [1]}, "got a column sum. Did you mean sums?"),
        ("first", {"first": ["a"], "calls": [1]}, "got calls, which belongs to all keys of"),
        ("first", {"first": ["a"], "sums": [1], "ts": [EPOCH]}, "no map of the table has a time"),
        ("first", {"first": ["a"]}, "needs a column for a map of the class; got none. Maps of the"),
        (None, {"first": ["a"], "sums": [1]}, "needs keys that its rows belong to; got none"),
    ],
)
def test_other_columns_are_refused(keys: Any, rows: Any, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        sums(keys, table(rows))
    assert said in str(caught.value)


def test_a_state_that_expires_needs_its_time() -> None:
    stream, rows = stream_of([VISITS]), {"key": ["a"], "last": [1]}
    with pytest.raises(QueryError, match="a state with a time to live needs a time; got key, last"):
        stream.process(Accounts, keys="k", initial=table(rows))
    with pytest.raises(QueryError, match="ts must be a time; got bigint"):
        stream.process(Accounts, keys="k", initial=table({**rows, "ts": [1]}))
    some = pa.table({"key": ["a", "b"], "last": [1, 2], "ts": pa.array([EPOCH, None], TIME)})
    made = stream.process(Accounts, keys="k", initial=table(some))
    with pytest.raises(SourceError, match="ts must say when a row was set; got NULL for key 'b'"):
        ran(made)


def test_what_is_no_plain_table_is_refused(tmp_path: Path) -> None:
    stream = stream_of([VISITS])
    with pytest.raises(QueryError, match=r"must be a table of the session; got DataFrame\. Write"):
        stream.process(Sums, keys="v", initial=pd.DataFrame())  # type: ignore[arg-type]
    rows = {"v": [1], "sums": [1], "since": [EPOCH]}
    with pytest.raises(QueryError, match="is read once; got VALID FROM"):
        stream.process(Sums, keys="v", initial=table(rows, valid_from="since"))
    (tmp_path / "rows.csv").write_text("v,sums\n1,10\n")
    again = table(str(tmp_path / "rows.csv"), refresh="1 minute")
    with pytest.raises(QueryError, match="is read once; got REFRESH EVERY"):
        stream.process(Sums, keys="v", initial=again)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"first": ["a", "b", "a"]}, "each key must have one row; got several of first 'a'"),
        ({"first": ["a", None, None]}, "each key must have one row; got several of first None"),
    ],
)
def test_two_rows_of_a_key_are_refused(rows: Any, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        sums("first", table({**rows, "sums": [1, 2, 3]}))
    assert said in str(caught.value)


def test_a_state_of_a_later_time_is_refused() -> None:
    rows = frame([{"key": "a", "balance": 1, "last": 1, "ts": 5}])
    stream = stream_of([VISITS]).process(Accounts, keys="k", initial=table(rows))
    with pytest.raises(TaskError) as caught:
        ran(stream)
    said = str(caught.value)
    assert "last['a'] of the table of initial state must be set before" in said
    assert "it is set at 1970-01-01T00:00:00.000005Z. Begin the stream after" in said
