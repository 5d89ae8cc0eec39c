"""Declared CSV with any options, in any encoding and compression, beside Python's csv module."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.delimited import delimited_rows
from tests.source.check import all_rows, check_times, fresh, read_range
from tidegate.schema import TIME
from tidegate.source.files import FilesConnector
from tidegate.source.subscription import Reading
from tidegate.source.text.pattern import Pattern

SCHEMA = pa.schema(
    [("t", TIME), ("n", pa.int32()), ("x", pa.float64()), ("d", pa.decimal128(6, 2))]
)
SCHEMA = SCHEMA.append(pa.field("s", pa.string()))

times = st.sampled_from(["31.01.2024 10:00", " 01.02.2024 23:59", "31.02.2024 10:00", "NA", "soon"])
numbers = st.sampled_from(
    [
        "1",
        "-7",
        "+5",
        "007",
        "2.5",
        "1e3",
        "0.125",
        "12345.6",
        "9999.99",
        "2147483648",
        "NA",
        "",
        "x",
    ]
)
texts = st.text("ab;|,'\"\té€ \n", max_size=5) | st.sampled_from(["NA", "", "00123"])
options = st.fixed_dictionaries(
    {
        "sep": st.sampled_from([";", "|", "\t", ","]),
        "quote": st.sampled_from(['"', "'"]),
        "header": st.booleans(),
        "nullValue": st.sampled_from(["", "NA"]),
        "encoding": st.sampled_from(["utf-8", "utf-16", "utf-16-be", "cp1252"]),
    }
)


def written(cell: str, sep: str, quote: str, force: bool) -> str:
    plain = not any(c in cell for c in f"{sep}{quote}\n\r") and not force
    return cell if plain else quote + cell.replace(quote, 2 * quote) + quote


@settings(max_examples=max(40, settings().max_examples // 2), deadline=None)
@given(
    st.lists(st.tuples(times, numbers, numbers, numbers, texts), min_size=1, max_size=8),
    options,
    st.booleans(),
    st.booleans(),
    st.integers(1, 300),
)
def test_options_mean_what_they_mean_to_a_plain_reader(
    folder: Path,
    rows: list[tuple[str, ...]],
    options: dict[str, object],
    packed: bool,
    force: bool,
    block_bytes: int,
) -> None:
    sep, quote, header = str(options["sep"]), str(options["quote"]), bool(options["header"])
    lines = [sep.join(written(c, sep, quote, force) for c in (*row, "more")) for row in rows]
    lines = [line for line in lines if line]
    top = [sep.join([*SCHEMA.names, "unread"])] if header else []
    text = "\n".join([*top, *lines]) + "\n"
    data = text.encode(str(options["encoding"]))
    path = fresh(folder, "a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    reading = Reading.of(SCHEMA, {**options, "timestampFormat": "dd.MM.yyyy HH:mm"}, "test")
    connector = FilesConnector(str(path), str(path), "t", block_bytes=block_bytes, reading=reading)
    (source,) = connector.discover()
    expected = delimited_rows(
        text,
        SCHEMA,
        sep=sep,
        quote=quote,
        header=header,
        null=str(options["nullValue"]),
        strptime="%d.%m.%Y %H:%M",
    )
    assert all_rows(source) == len(expected)
    assert read_range(source, 0, len(expected)) == expected
    check_times(source, "t", expected, 0, len(expected))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "2024-01-31T10:00:00.123456+02:00", 1706688000123456),
        ("yyyy-MM-dd HH:mm:ss[.SSS][X]", "2024-01-31 08:00:00", 1706688000000000),
        ("yyyy-MM-dd HH:mm:ss[.SSS][X]", "2024-01-31 08:00:00.5Z", 1706688000500000),
        ("d MMM yy, h:mm a", "31 jan 24, 8:00 AM", 1706688000000000),
        (
            "EEE, d MMMM yyyy hh 'o''clock' a",
            "Wed, 31 January 2024 12 o'clock am",
            1706659200000000,
        ),
        ("yyyyMMddHHmmss", "20240131080000", 1706688000000000),
        ("M/d/yyyy", "2/29/2024", 1709164800000000),
        ("M/d/yyyy", "2/29/2023", None),
        ("HH:mm dd.MM.yyyy", "24:00 01.01.2024", None),
        ("dd.MM.yyyy", "1.1.2024", None),
    ],
)
def test_patterns_of_times(pattern: str, text: str, expected: int | None) -> None:
    found = Pattern.parse(pattern, "test").times(pa.array([text, None, "?"]))
    assert found.cast(pa.int64()).to_pylist() == [expected, None, None]
    days = Pattern.parse(pattern, "test").dates(pa.array([text]))
    local = {1706659200000000: 19753, 1709164800000000: 19782}
    assert days.cast(pa.int32()).to_pylist() == [
        None if expected is None else local.get(expected, 19753)
    ]


def test_bytes_that_are_no_text_do_not_end_the_look_for_types(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"t,day,name\n" + b"2024-01-31T08:00:00Z,31.01.2024,caf\xe9\n" * 2)
    reading = Reading.of(None, {"dateFormat": "dd.MM.yyyy"}, "test")
    connector = FilesConnector(str(path), str(path), "t", reading=reading)
    assert connector.schema.field("day").type == pa.date32()
    assert connector.schema.field("name").type == pa.string()


def test_a_line_may_have_too_many_cells_and_no_text_in_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"t,n\n2024-01-31T08:00:00Z,1\n2024-01-31T08:00:01Z,\xff,2\n")
    (source,) = FilesConnector(str(path), str(path), "t").discover()
    rows = source.reader(0, all_rows(source)).read(["n"])
    assert rows.table.column("n").to_pylist() == [1]
    assert [r.reason for r in rows.rejects] == ["line 3: 2 fields must be in a line, got 3"]
