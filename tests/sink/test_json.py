"""Lines of JSON against Python's own json module."""

from __future__ import annotations

import json
import math
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tidegate.schema import TIME
from tidegate.sink.json import encoded, objects, write_json

NONFINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
texts = st.text(st.characters(codec="utf-8"), max_size=8)
CELLS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int8(), st.integers(-128, 127)),
    "float": (pa.float64(), st.floats()),
    "text": (pa.string(), texts),
    "time": (
        TIME,
        st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    ),
    "date": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "decimal": (
        pa.decimal128(20, 4),
        st.decimals(-(10**9), 10**9, allow_nan=False, places=4),
    ),
    "list": (pa.list_(pa.float64()), st.lists(st.none() | st.floats(), max_size=3)),
    "struct": (
        pa.struct([("a b", pa.string()), ("n", pa.int64())]),
        st.fixed_dictionaries({"a b": texts, "n": st.none() | st.integers(0, 9)}),
    ),
}


def plain(value: Any) -> Any:
    """What a reader of JSON should see of a value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else NONFINITE[str(value)]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 5))
    columns = {}
    for name in names:
        type_, values = CELLS[name]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[draw(st.sampled_from(["", '"', "é\n"])) + name] = pa.array(cells, type_)
    return pa.table(columns)


@settings(max_examples=60 if not LONG else 2000)
@given(tables())
def test_every_line_reads_back_as_its_row(table: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        with path.open("wb") as out:
            write_json(table, out)
        text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == [plain(r) for r in table.to_pylist()]


@given(st.lists(st.sampled_from(["a", "é", 'é "', None, "\n"]), min_size=2, max_size=6))
def test_a_cell_is_the_same_text_whatever_is_beside_it(values: list[str | None]) -> None:
    """Else the bytes of a row would follow from how batches are cut."""
    numbers = [{"a": math.nan, None: None}.get(v, 0.5) for v in values]
    whole = pa.record_batch(
        {"s": pa.array(values, pa.string()), "x": pa.array(numbers, pa.float64())}
    )
    alone = [objects(whole.slice(i, 1))[0].as_py() for i in range(len(values))]
    assert objects(whole).to_pylist() == alone


@given(st.lists(st.none() | texts, max_size=6))
def test_text_is_what_the_json_module_reads(values: list[str | None]) -> None:
    found = encoded(pa.array(values, pa.string())).to_pylist()
    assert [None if f is None else json.loads(f) for f in found] == values


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=6))
def test_short_floats_keep_every_bit(values: list[float]) -> None:
    found = encoded(pa.array(values, pa.float32())).to_pylist()
    assert [np.float32(json.loads(f)) for f in found] == values


def test_floats_keep_every_bit() -> None:
    values = [0.1, 1e300, 5e-324, -1.7976931348623157e308, 1 / 3, 123456789012345.67, 1e16, 2.0**53]
    assert [float(v) for v in encoded(pa.array(values)).to_pylist()] == values


def test_many_rows_in_several_chunks() -> None:
    parts = [pa.table({"v": list(range(k, k + 50_000))}) for k in (0, 50_000)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        with path.open("wb") as out:
            write_json(pa.concat_tables(parts), out)
        lines = path.read_text().splitlines()
    assert len(lines) == 100_000
    assert (lines[0], lines[-1]) == ('{"v": 0}', '{"v": 99999}')
