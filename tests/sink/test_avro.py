"""Rows as Avro values, read back by fastavro and by our own source; what Avro has no form for."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tidegate.errors import OptionError
from tidegate.sink.kafka.avro import avro_schema, avro_values
from tidegate.source.message.avro.arrow import arrow_schema
from tidegate.source.message.avro.format import AvroValues
from tidegate.source.message.avro.schema import record_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
CLOCK = st.times(time(0), time(23, 59, 59))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**digits) + 1, 10**digits - 1)
    return whole.map(lambda n: Decimal(n).scaleb(-scale, EXACT))


EXACT = Context(prec=60)
DECIMALS = ((1, 0), (2, 2), (18, 3), (36, 0), (38, 9))
PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), st.dates(date(1, 1, 2), date(9999, 12, 30))),
    (pa.time64("us"), CLOCK),
    (pa.timestamp("us", "UTC"), TIMES),
    *(
        (pa.decimal128(d, s), decimals(d, s))
        for d, s in ((1, 0), (2, 2), (18, 3), (36, 0), (38, 9))
    ),
]


def nested(
    inner: st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]],
) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    def of(found: tuple[pa.DataType, st.SearchStrategy[Any]]) -> Any:
        type_, values = found[0], st.none() | found[1]
        rows = st.lists(values, max_size=3)
        pairs = st.lists(st.tuples(TEXTS, values), max_size=3, unique_by=lambda pair: pair[0])
        both = pa.struct([("a", type_), ("b", pa.int64())])
        records = st.fixed_dictionaries({"a": values, "b": st.none() | st.integers(0, 300)})
        return st.sampled_from(
            [(pa.list_(type_), rows), (pa.map_(pa.string(), type_), pairs), (both, records)]
        )

    return inner.flatmap(of)


TYPES = st.recursive(st.sampled_from(PLAIN), nested, max_leaves=3)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of some columns, of which the first are cut off: so that arrays have an offset."""
    rows, cut = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    columns = {}
    for number, (type_, values) in enumerate(draw(st.lists(TYPES, min_size=1, max_size=4))):
        size = rows + cut
        cells = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        columns[f"c{number}"] = pa.array(cells, type_)
    return pa.table(columns).slice(cut)


def plain(value: Any, type_: pa.DataType) -> Any:
    """A cell as fastavro gives it: maps are dictionaries."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: plain(item, type_.item_type) for key, item in value}
    if pa.types.is_list(type_):
        return [plain(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: plain(value[field.name], field.type) for field in type_}
    return value


def encoded(table: pa.Table, head: bytes = b"") -> list[bytes]:
    batches = table.combine_chunks().to_batches()
    return [value for batch in batches for value in avro_values(batch, head).to_pylist()]


@settings(max_examples=2000 if LONG else 150, deadline=None)
@given(tables())
def test_values_read_back_as_their_rows(table: pa.Table) -> None:
    text = avro_schema(table.schema, "test")
    values = encoded(table)
    assert len(values) == table.num_rows
    schema = fastavro.parse_schema(json.loads(text))
    found = [fastavro.schemaless_reader(io.BytesIO(value), schema) for value in values]
    expected = [plain(row, pa.struct(table.schema)) for row in table.to_pylist()]
    assert found == expected
    record = record_of(text, "test")
    layout = AvroValues("test", arrow_schema(record), "test", 0, "", None, record)
    parsed = layout.parse(values)
    assert not parsed.faults
    assert parsed.table.to_pylist() == table.to_pylist()


def test_a_value_begins_with_what_is_given() -> None:
    table = pa.table({"n": [1, None], "t": ["a", "é"]})
    assert encoded(table, b"\0\0\0\0\7") == [
        b"\0\0\0\0\7\2\2\2\2a",
        b"\0\0\0\0\7\0\2\4\xc3\xa9",
    ]


def test_infinities_and_nan_are_kept() -> None:
    table = pa.table({"x": [float("inf"), float("-inf"), float("nan")]})
    schema = fastavro.parse_schema(json.loads(avro_schema(table.schema, "test")))
    found = [fastavro.schemaless_reader(io.BytesIO(v), schema)["x"] for v in encoded(table)]
    assert (found[0], found[1], found[2] != found[2]) == (float("inf"), float("-inf"), True)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (("count(*)", pa.int64()), r"got 'count\(\*\)'. Give it another name with AS"),
        (("1st", pa.int64()), "must have names of letters"),
        (("d", pa.duration("us")), "column d must be of a type that Avro has; got duration"),
        (("m", pa.map_(pa.int64(), pa.string())), "column m must be of a type that Avro has"),
        (("s", pa.struct([("in", pa.duration("us"))])), "column s must be of a type that Avro has"),
    ],
)
def test_what_avro_has_no_form_for_is_refused(field: tuple[str, pa.DataType], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        avro_schema(pa.schema([field]), "test")


def test_named_types_keep_their_names_when_columns_come() -> None:
    inner = pa.struct([("x", pa.struct([("y", pa.int64())]))])
    one = pa.schema([("a", inner), ("b", pa.list_(inner))])
    two = pa.schema([("new", inner), *one])
    fields = {f["name"]: f for f in json.loads(avro_schema(two, "test"))["fields"]}
    assert [fields["a"], fields["b"]] == json.loads(avro_schema(one, "test"))["fields"]
    fastavro.parse_schema(json.loads(avro_schema(two, "test")))
