"""JSON and CSV values, beside `json.loads` and the module `csv`, and what is wrong with some."""

from __future__ import annotations

import csv
import io
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.source.message.check import INT, NUMBER, TEXT, layout, read
from tidegate.errors import OptionError, SourceError
from tidegate.source.message import value

COLUMNS = pa.schema([("a", INT), ("b", TEXT), ("c", pa.list_(NUMBER))])

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
objects = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | words,
        "c": st.none() | st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        "other": st.none() | words | st.booleans(),
    },
)
layouts_of_json = st.sampled_from([None, 0, 2])
poison = st.binary(max_size=6) | st.sampled_from(
    [b'{"a": 1', b'{"a": "x"}', b'{"a":1}{"a":2}', b'{"b": "\n"}', b"[1]", b"{}}", b"{\n", b"\n\n"]
)


def plain(data: bytes) -> dict[str, Any] | None:
    """A value by the library of Python; None where it is no row of the columns."""
    try:
        found = json.loads(data.decode())
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    row = {name: found.get(name) for name in COLUMNS.names}
    fits = {
        "a": lambda v: isinstance(v, int) and not isinstance(v, bool) and -(2**63) <= v < 2**63,
        "b": lambda v: isinstance(v, str),
        "c": lambda v: (
            isinstance(v, list)
            and all(x is None or (isinstance(x, (int, float)) and x is not True) for x in v)
        ),
    }
    return row if all(v is None or fits[n](v) for n, v in row.items()) else None


@given(
    st.lists(
        st.builds(lambda o, i: json.dumps(o, indent=i).encode(), objects, layouts_of_json)
        | st.none()
        | poison,
        max_size=12,
    )
)
def test_json_is_what_the_library_reads_and_poison_disturbs_no_neighbour(
    values: list[bytes | None],
) -> None:
    rows, _ = read(layout(columns=COLUMNS), values)
    tombstone = dict.fromkeys(COLUMNS.names)
    wanted = {
        i: row
        for i, v in enumerate(values)
        if (row := tombstone if v is None else plain(v)) is not None
    }
    assert rows == wanted


def test_json_goes_over_lines_but_not_inside_of_strings() -> None:
    values = [b'{\n "a": 1,\r\n "b": "x"}\n', b'{"b": "x\ny"}', b'\n{"a":\n2}', b'{"b": "\\n"}']
    rows, reasons = read(layout(columns=COLUMNS), values)
    assert {i: (r["a"], r["b"]) for i, r in rows.items()} == {
        0: (1, "x"),
        2: (2, None),
        3: (None, "\n"),
    }
    assert reasons[1].startswith("not JSON: Invalid control character")


def test_json_columns_are_inferred_from_the_sample() -> None:
    values = [b'{"t": "2024-01-31T12:00:00Z", "n": 1, "s": {"x": [1.5]}}', None, b"", b"?"]
    found = layout(values, time="t")
    assert [str(f.type) for f in found.schema] == [
        "timestamp[us, tz=UTC]",
        "int64",
        "struct<x: list<item: double>>",
    ]
    assert found.types_from == "inferred from the first 2 values"
    rows, reasons = read(found, values)
    assert rows[0]["t"] == datetime(2024, 1, 31, 12, tzinfo=UTC)
    assert rows[1] == {"t": None, "n": None, "s": None}
    assert reasons[2] == "an empty value"
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(pickle.loads(pickle.dumps(found))) == hash(found)


@pytest.mark.parametrize(
    ("sample", "must", "got"),
    [
        ([None, b""], "a value must be there to tell the columns from", "none"),
        ([b"[1, 2]"], "a value must be one JSON object", "'[1, 2]'"),
    ],
)
def test_json_without_an_object_is_refused(sample: list[bytes], must: str, got: str) -> None:
    with pytest.raises(SourceError) as raised:
        layout(sample)
    assert (raised.value.requirement, raised.value.got) == (must, got)


def test_values_of_any_size_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value, "PIECE_BYTES", 1000)
    texts = ["x" * n for n in (0, 5000, 10, 900, 900, 3, 2_000_000, 1)]
    values: list[bytes | None] = [json.dumps({"b": text}).encode() for text in texts]
    values[3:3] = [b"?", None]
    rows, reasons = read(layout(columns=COLUMNS), values)
    assert [r["b"] for r in rows.values()] == [*texts[:3], None, *texts[3:]]
    assert list(reasons) == [3]


def test_values_of_other_encodings_are_read() -> None:
    text = '{"a": 1, "b": "né\n"}'.replace("\n", "\\n")
    for codec in ("utf-16", "utf-16-le", "latin-1"):
        values = [text.encode(codec), text.replace("1", "2").encode(codec)]
        rows, reasons = read(layout(columns=COLUMNS, encoding=codec), values)
        assert [(r["a"], r["b"]) for r in rows.values()] == [(1, "né\n"), (2, "né\n")]
        assert not reasons


cells = st.lists(st.text('ab1",;\n\r ', max_size=6), min_size=3, max_size=3)
CELLS = pa.schema([("x", TEXT), ("y", TEXT), ("z", TEXT)])


def written(row: list[str], quoting: Any, end: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\r\n").writerow(row)
    return (text.getvalue().removesuffix("\r\n") + end).encode()


@given(
    st.lists(
        st.tuples(
            cells,
            st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
            st.sampled_from(["", "\n", "\r\n"]),
        ),
        max_size=8,
    ),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([b'"', b'a,"b', b"", b"1,2", b"a\nb"]))),
)
def test_csv_is_what_the_library_wrote_and_poison_disturbs_no_neighbour(
    records: list[tuple[list[str], Any, str]], bad: list[tuple[int, bytes]]
) -> None:
    values: list[bytes | None] = [written(*record) for record in records]
    wanted: list[list[str] | None] = [row for row, _, _ in records]
    for place, poisoned in bad:
        values.insert(place, poisoned)
        wanted.insert(place, None)
    rows, reasons = read(layout(columns=CELLS, format="csv"), values)
    for place, row in enumerate(wanted):
        if row is None:
            assert place in reasons
        else:
            assert list(rows[place].values()) == [cell or None for cell in row]


def test_csv_has_types_and_reasons() -> None:
    values = [b"1;x;1,5", b"2;y", b'"3";"a\nb";NA', b"?;x;1", b"4;x;1\n5;y;2", None, b'6;"x']
    found = layout(
        columns=pa.schema([("n", INT), ("s", TEXT), ("p", TEXT)]),
        format="csv",
        delimiter=";",
        nullValue="NA",
    )
    rows, reasons = read(found, values)
    assert rows == {
        0: {"n": 1, "s": "x", "p": "1,5"},
        2: {"n": 3, "s": "a\nb", "p": None},
        5: {"n": None, "s": None, "p": None},
    }
    assert reasons == {
        1: "3 fields must be in a line, got 2",
        3: "column n: '?' is not a bigint",
        4: "one record must be in a value, got 2",
        6: "a quote is not closed",
    }


def test_csv_columns_are_numbered_where_nobody_names_them() -> None:
    found = layout([b"1,x,2024-01-31", b"2,y,"], format="csv")
    assert [(f.name, str(f.type)) for f in found.schema] == [
        ("c1", "int64"),
        ("c2", "string"),
        ("c3", "date32[day]"),
    ]


@pytest.mark.parametrize(
    ("options", "columns", "says"),
    [
        ({"header": False}, None, "option header is not for JSON values; got format 'json'."),
        ({"compression": "gzip"}, None, "option compression is not for JSON values"),
        ({"format": "csv", "subject": "s"}, None, "option subject is not for CSV values"),
        ({"format": "jsn"}, None, "must be a format; got 'jsn'. Did you mean json?"),
        ({"registry": "http://u:p@host"}, None, "must be without keys and passwords"),
        ({"format": "csv"}, COLUMNS, "column c must be of a type that one cell can hold"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    options: dict[str, object], columns: pa.Schema | None, says: str
) -> None:
    with pytest.raises(OptionError, match=says.replace("?", r"\?")):
        layout([b"{}"], columns, **options)
