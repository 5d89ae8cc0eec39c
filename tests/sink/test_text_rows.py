"""Rows of CSV and JSON are compared as texts: no two that differ become equal."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.schema import TIME
from tidegate.sink.folder.form import WRITERS
from tidegate.sink.folder.text_rows import as_text, read_text

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)).map(lambda t: t.replace(tzinfo=UTC))
_COLUMNS = (
    (pa.string(), st.one_of(st.sampled_from(["", "\n", '"', ",", "\r\n", "null", "NULL"]), _TEXTS)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (TIME, _TIMES),
    (pa.date32(), st.dates(date(1, 1, 1))),
    (pa.decimal128(10, 2), st.decimals(-999, 999, places=2).map(Decimal)),
    (pa.binary(), st.binary(max_size=4)),
    (pa.list_(pa.int64()), st.lists(st.integers(0, 9), max_size=2)),
    (pa.list_(pa.string()), st.lists(_TEXTS, max_size=2)),
)


@st.composite
def _batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of one to three columns, with NULL."""
    chosen = draw(st.lists(st.sampled_from(_COLUMNS), min_size=1, max_size=3))
    count = draw(st.integers(1, 5))
    columns = []
    for type_, values in chosen:
        cells = st.one_of(st.none(), values)
        columns.append(pa.array(draw(st.lists(cells, min_size=count, max_size=count)), type_))
    return pa.record_batch(columns, [f"c{i}" for i in range(len(columns))])


@pytest.mark.parametrize("format", ["csv", "json"])
@given(_batches())
def test_rows_stay_apart_and_do_not_depend_on_the_cut(format: str, batch: pa.RecordBatch) -> None:
    texts = as_text(batch, format)
    assert texts.num_rows == batch.num_rows
    assert texts.schema.names == batch.schema.names
    for column, text in zip(batch.columns, texts.columns, strict=True):
        assert text.is_null().equals(column.is_null())
        pairs = {(repr(a), b) for a, b in zip(column.to_pylist(), text.to_pylist(), strict=True)}
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    out = io.BytesIO()
    WRITERS[format](pa.Table.from_batches([batch]), out)
    (whole,) = read_text(out.getvalue(), format)
    single = [as_text(batch.slice(i, 1), format) for i in range(batch.num_rows)]
    assert pa.Table.from_batches(single).equals(pa.Table.from_batches([whole]))
