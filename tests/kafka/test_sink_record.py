"""Rows as keys and values of records."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from tidegate.schema import TIME
from tidegate.sink.json import objects
from tidegate.sink.kafka.record import KEY, PLAIN, VALUE, changes_as_records, rows_as_records
from tidegate.sink.upsert import DELETE, OP, UPSERT

ROWS = pa.table(
    {
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], TIME),
        "name": pa.array(['a "b"\n,c', None]),
        "n": pa.array([7, None], pa.int64()),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "raw": pa.array([b"\x00\xff", None], pa.binary()),
        "tags": pa.array([["x"], []], pa.list_(pa.string())),
    }
)


def keys(*names: str) -> list[bytes | None]:
    found: list[bytes | None] = rows_as_records(ROWS, names, PLAIN["json"]).column(KEY).to_pylist()
    return found


def test_the_key_of_one_column_is_its_plain_text_and_of_several_a_json_object() -> None:
    assert keys() == [None, None]
    assert keys("name") == [b'a "b"\n,c', None]
    assert keys("n") == [b"7", None]
    assert keys("price") == [b"1.50", None]
    assert keys("raw") == [b"\x00\xff", None]
    assert keys("at") == [b"2024-01-01T00:00:00.000000Z", None]
    assert keys("tags") == [b'["x"]', b"[]"]
    assert keys("n", "name")[1] == b'{"n": null, "name": null}'
    assert json.loads(keys("n", "name")[0] or b"") == {"n": 7, "name": 'a "b"\n,c'}


def test_values_are_json_objects_as_files_have_them() -> None:
    found = rows_as_records(ROWS, (), PLAIN["json"]).column(VALUE).to_pylist()
    assert [v.decode() for v in found] == objects(ROWS.to_batches()[0]).to_pylist()


def test_values_of_csv_are_lines_also_with_ends_of_lines_inside() -> None:
    first, second = rows_as_records(ROWS, (), PLAIN["csv"]).column(VALUE).to_pylist()
    assert first.startswith(b'2024-01-01 00:00:00.000000Z,"a ""b""\n,c",7,1.50,')
    assert second == b',,,,,"[]"'


def test_many_rows_keep_their_order() -> None:
    many = pa.table({"n": pa.array(range(150_000))})
    for values in PLAIN.values():
        records = rows_as_records(many, ("n",), values)
        assert records.column(KEY).to_pylist() == [b"%d" % n for n in range(150_000)]
        assert len(set(records.column(VALUE).to_pylist())) == 150_000


def test_a_row_that_goes_is_a_tombstone() -> None:
    changes = pa.table({"k": ["a", None], "n": [1, None], OP: [UPSERT, DELETE]})
    records = changes_as_records(changes, ("k",), PLAIN["json"])
    assert records.column(KEY).to_pylist() == [b'{"k": "a"}', b'{"k": null}']
    assert records.column(VALUE).to_pylist() == [b'{"k": "a", "n": 1}', None]
