"""Rows of CSV and JSON are read back as they were written: their digest is that of the rows."""

from __future__ import annotations

import io
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sink.output import commit, opened, stage, started
from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.schema import _OWN, TIME
from tidegate.sink.digest.digest import Digest
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.form import WRITERS
from tidegate.sink.folder.text_rows import lossy_column, read_text
from tidegate.sink.folder.written_rows import EventSpan, checked_digest, rows_of
from tidegate.state.manifest import Manifest

_TEXTS = st.one_of(
    st.sampled_from(["", "\n", '"', ",", "\r\n", "null", "NULL", "\0", "\\", " ", "nan", "\u2028"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
_PLAIN: tuple[tuple[pa.DataType, st.SearchStrategy[object]], ...] = (
    (pa.string(), _TEXTS),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    (TIME, st.integers(-(2**63), 2**63 - 1)),
    (TIME, st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))),
    (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.date32(), st.dates(date(1, 1, 1))),
    (pa.decimal128(10, 2), st.decimals(-999, 999, places=2)),
    (pa.decimal128(38, 12), st.decimals(-1, 1, places=12)),
    (pa.decimal128(38, 0), st.integers(1 - 10**38, 10**38 - 1).map(Decimal)),
    (pa.binary(), st.binary(max_size=4)),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.integers(-(2**63), 2**63 - 1)),
)


def _array(values: list[object], type_: pa.DataType) -> pa.Array:
    """Also of times that Python does not have, given as numbers."""
    times = pa.types.is_temporal(type_)
    if times and any(isinstance(value, int) for value in values):
        return pa.array(values, pa.int32() if type_ == pa.date32() else pa.int64()).view(type_)
    return pa.array(values, type_)


@st.composite
def _columns(draw: st.DrawFn, count: int, depth: int = 2) -> pa.Array:
    """A column with NULL, of any type but a map."""
    kind = draw(st.sampled_from(["plain", "plain", "list", "struct"] if depth else ["plain"]))
    missing = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    if kind == "list":
        lengths = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
        lengths = [0 if gone else n for n, gone in zip(lengths, missing, strict=True)]
        items = draw(_columns(sum(lengths), depth - 1))
        offsets = [sum(lengths[:i]) for i in range(count + 1)]
        mask = pa.array(missing, pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=mask)
    if kind == "struct":
        parts = [draw(_columns(count, depth - 1)) for _ in range(draw(st.integers(1, 2)))]
        names = [f"m {i}" for i in range(len(parts))]
        return pa.StructArray.from_arrays(parts, names, mask=pa.array(missing, pa.bool_()))
    type_, values = draw(st.sampled_from(_PLAIN))
    cells = draw(st.lists(values, min_size=count, max_size=count))
    return _array([None if m else v for v, m in zip(cells, missing, strict=True)], type_)


@st.composite
def _batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of one to three columns, with names that need quotes."""
    count = draw(st.integers(1, 5))
    columns = [draw(_columns(count)) for _ in range(draw(st.integers(1, 3)))]
    names = draw(st.permutations(["c", 'a "b"', "d,e"]))
    return pa.record_batch(columns, names[: len(columns)])


def _written(batch: pa.RecordBatch, format: str) -> bytes:
    out = io.BytesIO()
    WRITERS[format](pa.Table.from_batches([batch]), out)
    return out.getvalue()


_FORMATS = pytest.mark.parametrize("format", ["csv", "json"])


@_FORMATS
@given(batch=_batches())
def test_rows_are_read_back_with_the_digest_they_were_written_with(
    format: str, batch: pa.RecordBatch
) -> None:
    read = list(read_text(_written(batch, format), format, batch.schema))
    assert [found.schema for found in read] == [batch.schema]
    table = pa.Table.from_batches([batch])
    assert Digest.of(pa.Table.from_batches(read)) == Digest.of(table)


def test_every_type_but_a_map_is_read_back() -> None:
    """So the strategy above has what the engine has."""
    tried = {type_ for type_, _ in _PLAIN if not pa.types.is_decimal(type_)}
    assert tried | {pa.int16(), pa.int32()} == _OWN


@_FORMATS
def test_a_long_text_is_read_back(format: str) -> None:
    batch = pa.record_batch([pa.array(["a\n" * 2_000_000, "b"])], ["c"])
    read = list(read_text(_written(batch, format), format, batch.schema))
    assert pa.Table.from_batches(read).equals(pa.Table.from_batches([batch]))


@_FORMATS
def test_the_column_and_row_of_a_damaged_value_are_named(format: str) -> None:
    times = pa.array([0, 1], pa.int64()).cast(TIME)
    lists = pa.array([[timedelta(1)], [timedelta(2)]], pa.list_(pa.duration("us")))
    batch = pa.record_batch([times, lists, pa.array([10, 20])], ["ts", "gaps", "n"])
    whole = _written(batch, format)
    for good, bad, column, kind in (
        (b"20", b"2o" if format == "csv" else b'"2o"', "n", "bigint"),
        (b".000001Z", b".00000_Z", "ts", "timestamp"),
        (b"2 days", b"2 d_ys", "gaps", "array<interval>"),
    ):
        head, _, tail = whole.rpartition(good)
        with pytest.raises(pa.ArrowInvalid) as error:
            list(read_text(head + bad + tail, format, batch.schema))
        assert f"row 1 of the file: column {column} must be a" in str(error.value)
        assert f" {kind}: " in str(error.value)
    other = pa.schema([*list(batch.schema)[:2], pa.field("m", pa.int64())])
    with pytest.raises(pa.ArrowInvalid, match="columns ts, gaps, n, not ts, gaps, m"):
        list(read_text(whole, format, other))


@pytest.mark.parametrize(
    "damaged",
    [b'{"c": {"a": 1}}\n{"c": {"b": 1}}\n', b'{"c": {"a": 1}}\n{"c": [1]}\n', b"[1]\n", b"{}\n1\n"],
)
def test_json_of_another_shape_is_refused(damaged: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid):
        list(read_text(damaged, "json", pa.schema([("c", pa.struct([("a", pa.int64())]))])))


def test_maps_are_not_read_back() -> None:
    map_ = pa.map_(pa.string(), pa.int64())
    deep = pa.struct([("x", pa.list_(map_))])
    assert lossy_column(pa.schema([("a", pa.int64()), ("m", deep)])).name == "m"
    assert lossy_column(pa.schema([("a", pa.list_(pa.int64()))])) is None


@_FORMATS
def test_the_digest_of_an_output_is_read_from_its_files(format: str, tmp_path: Path) -> None:
    """Without the ledger of a batch another one tells the types; without any it is refused."""
    out = tmp_path / "out"
    sink, store = FileSink(out, format), started(tmp_path / "ck")
    whole = pa.table({"ts": [0, 1], "v": ["", None], "x": [0.1, 1 / 3]})
    tables = [whole.slice(0, 1), whole.slice(1, 1)]
    opened(sink, store, whole.schema)
    for number, table in enumerate(tables):
        commit(sink, store, number, table)
    assert checked_digest(str(out), EventSpan()) == Digest.of(whole)
    assert checked_digest(str(out), EventSpan(to_us=0)) == Digest.of(tables[0])
    ledgers = sorted((out / "_ledger").iterdir())
    ledgers[1].unlink()
    with pytest.raises(SinkError, match="no batch has published it"):
        checked_digest(str(out), EventSpan())
    read = [batch.schema.types for batch in rows_of(str(out), EventSpan())]
    assert read == [whole.schema.types] * 2
    shutil.rmtree(out / "_ledger")
    with pytest.raises(OptionError, match=f"got {format} without a ledger that has its types"):
        checked_digest(str(out), EventSpan())


@_FORMATS
def test_the_digest_of_maps_is_refused(format: str, tmp_path: Path) -> None:
    sink, store = FileSink(tmp_path / "out", format), started(tmp_path / "ck")
    table = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    with pytest.raises(OptionError, match="got column m, a map<") as error:
        checked_digest(str(tmp_path / "out"), EventSpan())
    assert error.value.remedy.startswith("Give its CHECKPOINT")


@_FORMATS
def test_the_types_are_those_of_the_run_that_made_a_batch(format: str, tmp_path: Path) -> None:
    """Also where a later run, whose query has other columns, publishes the batch."""
    out, store = tmp_path / "out", started(tmp_path / "ck")
    sink = FileSink(out, format)
    old, new = pa.table({"ts": [1], "v": ["7"]}), pa.table({"ts": [2], "n": [8]})
    opened(sink, store, old.schema)
    receipts = stage(sink, BatchId(0), old)
    written = {"": tuple(receipt.to_dict() for receipt in receipts)}
    store.publish(Manifest(0, mappings(0), 0, outputs=written))
    sink = FileSink(out, format)
    opened(sink, store, new.schema, owner=1)
    sink.publish(BatchId(0), receipts)
    commit(sink, store, 1, new)
    assert [b.to_pylist() for b in rows_of(str(out), EventSpan())] == [
        old.to_pylist(),
        new.to_pylist(),
    ]
