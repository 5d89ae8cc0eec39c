from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oracle import text as twin
from tests.source.check import all_rows, check_times, fresh, read_range
from tidegate.connector import Source
from tidegate.errors import GateError, SourceError
from tidegate.schema import TIME
from tidegate.source.files import FilesConnector
from tidegate.source.piece import PIECES
from tidegate.source.subscription import Reading
from tidegate.source.text.source import TextSource


def opened(path: Path, data: bytes, time: str | None = "t", **options: object) -> Source:
    path.write_bytes(data)
    connector = FilesConnector(str(path), str(path), time, **options)  # type: ignore[arg-type]
    (source,) = connector.discover()
    return source


cells = st.one_of(
    st.text('ab",\n\r 1', max_size=4),
    st.sampled_from(
        [
            *(
                "1",
                "-7",
                "2.5",
                "1e3",
                "true",
                "2024-01-01",
                "x",
                "",
                " 5 ",
                "99999999999999999999",
            ),
            *("+5", "++5", "0x1F", "0XFFFFFFFFFFFFFFFF", "0x11112222333344445", "-0x1", "0x"),
        ]
    ),
)
times = st.sampled_from(
    [
        "2024-01-01T00:00:00",
        "2024-01-01 10:00:00.25",
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.123456789+02:00",
        "2024-01-02",
        "2024-02-30",
        "",
        "never",
    ]
)


LEFT_OPEN = '2024-01-01T00:00:00,,"'


def quoted(cell: str) -> str:
    plain = not any(c in cell for c in '",\n\r')
    return cell if plain else '"' + cell.replace('"', '""') + '"'


line = st.one_of(
    st.tuples(times, cells, cells).map(lambda row: ",".join(quoted(c) for c in row)),
    st.tuples(times, cells, cells).map(lambda row: ",".join(quoted(c) for c in row)),
    st.text('a",1\r ', max_size=8) | st.just(LEFT_OPEN),
)
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\r"])


@settings(max_examples=max(50, settings().max_examples))
@given(st.data(), st.lists(line, max_size=12), ends, st.booleans(), st.integers(1, 200))
def test_any_range_equals_the_rows_read_one_at_a_time(
    folder: Path,
    data: st.DataObject,
    lines: list[str],
    end: str,
    closed: bool,
    block_bytes: int,
) -> None:
    good = ["2024-01-01T00:00:00,1,x"] * (len(lines) + 1)
    text = end.join(["t,a,b", *good, *lines]) + (end if closed else "")
    path = fresh(folder, "a.csv")
    source = opened(path, text.encode(), block_bytes=block_bytes)
    expected = twin.csv_rows(text.encode(), source.schema)
    assert all_rows(source) == len(expected)
    assert source.ended()
    assert read_range(source, 0, len(expected)) == expected
    start = data.draw(st.integers(0, len(expected)))
    stop = data.draw(st.integers(start, len(expected)))
    assert read_range(source, start, stop) == expected[start:stop]
    check_times(source, "t", expected, start, stop)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(-5, 10**12),
            st.floats(-1e6, 1e6),
            st.text(st.characters(codec="utf-8"), max_size=5),
        )
    ),
    st.sampled_from([16, 100, 400, 10_000]),
)
@example([(1, 0.5, "\ufeff")], 16)
def test_well_formed_rows_come_back(
    folder: Path, rows: list[tuple[int, float, str]], block_bytes: int
) -> None:
    lines = [
        f"2024-01-01T00:00:{n % 60:02},{i},{x!r},{quoted('~' + s)}"
        for n, (i, x, s) in enumerate(rows)
    ]
    path = fresh(folder, "a.csv")
    text = "\n".join(["t,i,x,s", *lines]) + "\n"
    source = opened(path, text.encode(), block_bytes=block_bytes)
    found = read_range(source, 0, all_rows(source))
    assert found == twin.csv_rows(text.encode(), source.schema)
    if block_bytes > len(text):
        assert [(r["i"], r["x"], r["s"]) for r in found] == [(i, x, "~" + s) for i, x, s in rows]


def test_types_are_found_in_the_first_block(tmp_path: Path) -> None:
    text = (
        "t,i,x,b,d,z,s,e,clock\n"
        "2024-01-01T10:00:00Z,1,2.5,true,2024-01-01,2024-01-01 00:00:00.5,hi,,12:00:00\n"
        "2024-01-01T10:00:01Z,,3,false,2024-01-02,,,,12:00:01\n"
    )
    source = opened(tmp_path / "a.csv", text.encode())
    assert source.schema == pa.schema(
        [
            ("t", TIME),
            ("i", pa.int64()),
            ("x", pa.float64()),
            ("b", pa.bool_()),
            ("d", pa.date32()),
            ("z", TIME),
            ("s", pa.string()),
            ("e", pa.string()),
            ("clock", pa.string()),
        ]
    )
    assert source.extend(1) == 2
    row = source.reader(1, 2).read(["i", "s", "e"]).table.to_pylist()
    assert row == [{"i": None, "s": None, "e": None}]


def hint(column: str) -> str:
    return f", the type of the first rows; declare {column} STRING to keep it as text"


def test_bad_rows_keep_their_place_and_say_why(tmp_path: Path) -> None:
    block = b"t,fare,n\n" + b"2024-01-01T00:00:00,1.5,1\n" * 4
    rest = (
        b"2024-01-01T00:00:01,abc,1\n"
        b"2024-01-01T00:00:02,1.5\n"
        b"2024-01-01T00:00:03,1.5,1,9\n"
        b"soon,1.5,1\n"
        b"2024-01-01T00:00:05,1.5,\xff\n"
        b'2024-01-01T00:00:06,1.5,"1\n'
        b"2024-01-01T00:00:07,1.5,2\n"
    )
    source = opened(tmp_path / "a.csv", block + rest, block_bytes=len(block))
    assert all_rows(source) == 11
    rows = source.reader(3, 11).read(["n", "fare"])
    assert rows.table.to_pylist() == [{"n": 1, "fare": 1.5}, {"n": 2, "fare": 1.5}]
    assert rows.seq.tolist() == [3, 10]
    assert [(r.seq, r.reason) for r in rows.rejects] == [
        (4, f"line 6, column fare: 'abc' is not a double{hint('fare')}"),
        (5, "line 7: 3 fields must be in a line, got 2"),
        (6, "line 8: 3 fields must be in a line, got 4"),
        (7, "line 9, column t: 'soon' is not a timestamp"),
        (8, "line 10, column n: '\ufffd' is not UTF-8"),
        (9, "line 11: a quote is not closed"),
    ]
    assert rows.rejects[0].raw == "2024-01-01T00:00:01,abc,1"
    _, valid = source.times(4, 11)
    assert valid.tolist() == [True, False, False, False, True, False, True]


def test_rejection_does_not_depend_on_the_columns_read(tmp_path: Path) -> None:
    head = b"t,x,y\n2024-01-01T00:00:00,1,1\n"
    data = head + b"2024-01-01T00:00:01,z,1\n" + b"2024-01-01T00:00:02,2,2\n"
    source = opened(tmp_path / "a.csv", data, block_bytes=len(head))
    source.extend(9)
    for columns in (["y"], ["x"], ["t"], []):
        rows = source.reader(0, 3).read(columns)
        assert rows.seq.tolist() == [0, 2]
        assert rows.table.column_names == columns
        assert [r.seq for r in rows.rejects] == [1]


def test_the_time_column_stays_one_when_most_values_are_times(tmp_path: Path) -> None:
    data = b"t,u\n2024-01-01T00:00:00,2024-01-01T00:00:00\nnever,never\n2024-01-02T00:00:00Z,x\n"
    source = opened(tmp_path / "a.csv", data)
    assert source.schema.field("t").type == TIME
    assert source.schema.field("u").type == pa.string()
    assert source.extend(9) == 3
    assert [r.seq for r in source.reader(0, 3).read(["t"]).rejects] == [1]


def test_a_time_column_of_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match="time column t must be a timestamp or a date; got string"
    ):
        opened(tmp_path / "a.csv", b"t,u\nnever,1\nsoon,2\n2024-01-01,3\n")


def test_dates_count_from_midnight(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", b"t\n1970-01-02\n1970-01-03\n")
    assert source.schema.field("t").type == pa.date32()
    source.extend(2)
    assert source.times(0, 2)[0].tolist() == [86_400_000_000, 2 * 86_400_000_000]


def test_a_byte_order_mark_and_nameless_columns(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", b"\xef\xbb\xbf,t\n1,2024-01-01\n")
    assert source.schema.names == ["_c0", "t"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a header line must be there"),
        (b"a,a\n1,2\n", "column names must be distinct; got a more than once"),
        (b"\xff\xfea\x00,\x00", "the first line must be the header"),
        (b"a,b\n1,2\n", "the time column must be there; got column t"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        opened(tmp_path / "a.csv", data)


def test_a_block_is_parsed_once_for_many_small_batches(tmp_path: Path) -> None:
    lines = b"".join(b"2024-01-01T00:00:00,%d\n" % i for i in range(1000))
    source = opened(tmp_path / "a.csv", b"t,i\n" + lines)
    source.extend(1000)
    before = PIECES.loads
    for start in range(0, 1000, 10):
        rows = source.reader(start, start + 10).read(["i"])
        assert rows.table.column("i").to_pylist() == list(range(start, start + 10))
    assert PIECES.loads == before + 1


def test_a_followed_file_grows_by_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    source = opened(path, b"t,i\n2024-01-01T00:00:00,1\n2024-01-01T00:00:01", follow=True)
    assert isinstance(source, TextSource)
    assert source.extend(10) == 1
    with path.open("ab") as file:
        file.write(b',2\n2024-01-01T00:00:02,"3')
    assert source.extend(10) == 2
    assert not source.ended()
    with path.open("ab") as file:
        file.write(b'"\n2024-01-01T00:00:03,4')
    assert source.extend(10) == 3
    assert [r["i"] for r in source.reader(0, 3).read(["i"]).table.to_pylist()] == [1, 2, 3]
    assert source.times(0, 3)[0].tolist()[-1] == 1704067202_000000
    source.finish()
    assert source.extend(10) == 4
    assert source.ended()


def test_a_followed_file_that_shrinks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    source = opened(path, b"t,i\n2024-01-01T00:00:00,1\n", follow=True)
    source.extend(1)
    path.write_bytes(b"t,i\n")
    with pytest.raises(GateError, match="must only grow"):
        source.extend(2)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    source = opened(path, b"t,i\n2024-01-01T00:00:00,1\n")
    source.extend(1)
    path.write_bytes(b"t,i\n2024-01-01T00:00:00,2\n2024-01-01T00:00:00,2\n")
    with pytest.raises(GateError, match=r"must not change .* got another content at byte 4"):
        source.reader(0, 1).read(["i"])


def test_an_unknown_column_lists_the_known_ones(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", b"t,fare\n2024-01-01T00:00:00,1\n")
    source.extend(1)
    with pytest.raises(SourceError, match="Did you mean fare"):
        source.reader(0, 1).read(["fair"])


def test_a_few_stray_cells_do_not_change_a_columns_type(tmp_path: Path) -> None:
    lines = b"".join(b"2024-01-01T00:00:00,%d,%d\n" % (i, i % 2) for i in range(9))
    data = b"t,i,s\n" + lines + b"2024-01-01T00:00:00,n/a,x\n" + b"2024-01-01T00:00:00,1,y\n" * 9
    source = opened(tmp_path / "a.csv", data)
    assert source.schema.field("i").type == pa.int64()
    assert source.schema.field("s").type == pa.string()
    assert source.extend(99) == 19
    assert [(r.seq, r.reason) for r in source.reader(0, 19).read(["s"]).rejects] == [
        (9, f"line 11, column i: 'n/a' is not a bigint{hint('i')}")
    ]


@pytest.mark.parametrize("block_bytes", [8, 50, 1000])
def test_a_quote_left_open_is_rejected_wherever_blocks_are_cut(
    tmp_path: Path, block_bytes: int
) -> None:
    good = "2024-01-01T00:00:00,1,x\n"
    stray = '2024-01-01T00:00:00,5,5"y\n'
    data = f"t,a,b\n{good}{stray}{good}{LEFT_OPEN}\n{good}"
    for ending in (good, LEFT_OPEN.rstrip('"')):
        path = fresh(tmp_path, "a.csv")
        source = opened(path, (data + ending).encode(), block_bytes=block_bytes)
        assert all_rows(source) == 6
        assert [r.seq for r in source.reader(0, 6).read([]).rejects] == [3]
    source = opened(
        fresh(tmp_path, "a.csv"),
        f"t,a,b\n{good}{stray}{LEFT_OPEN}".encode(),
        block_bytes=block_bytes,
    )
    assert all_rows(source) == 3
    assert [r.seq for r in source.reader(0, 3).read([]).rejects] == [2]


MIXED_ENDS = "t,a\r2024-01-01,1\r\n2024-01-02,2\r2024-01-03,3\n2024-01-04,4\r\r2024-01-05,5\r"


@pytest.mark.parametrize("block_bytes", [1, 17, 10_000])
def test_a_carriage_return_ends_a_record_as_in_spark_and_arrow(
    tmp_path: Path, block_bytes: int
) -> None:
    source = opened(tmp_path / "a.csv", MIXED_ENDS.encode(), block_bytes=block_bytes)
    assert source.schema.names == ["t", "a"]
    rows = read_range(source, 0, all_rows(source))
    assert [row["a"] for row in rows] == [1, 2, 3, 4, 5]


def test_a_followed_file_waits_for_the_line_feed_after_a_carriage_return(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    source = opened(path, b"t,a\r\n2024-01-01,1\r\n2024-01-02,2\r", follow=True)
    assert all_rows(source) == 1
    with path.open("ab") as file:
        file.write(b"\n2024-01-03,3\r2024")
    assert all_rows(source) == 3
    assert [row["a"] for row in read_range(source, 0, 3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("cells", "type_", "values"),
    [
        (["1", "+5", "9007199254740993"], pa.int64(), [1, 5, 9007199254740993]),
        (["+1.5", "2", "007"], pa.float64(), [1.5, 2.0, 7.0]),
        (["0x1F", "0XFFFFFFFFFFFFFFFF", "007"], pa.int64(), [31, -1, 7]),
    ],
)
def test_codes_are_texts_unless_numbers_are_declared(
    tmp_path: Path, cells: list[str], type_: pa.DataType, values: list[float]
) -> None:
    text = "t,a\n" + "".join(f"2024-01-01,{cell}\n" for cell in cells)
    source = opened(tmp_path / "a.csv", text.encode())
    assert source.schema.field("a").type == pa.string()
    assert [row["a"] for row in read_range(source, 0, all_rows(source))] == cells
    declared = Reading(pa.schema([("a", type_), ("t", TIME)]))
    source = opened(tmp_path / "a.csv", text.encode(), reading=declared)
    assert [row["a"] for row in read_range(source, 0, all_rows(source))] == values


def test_numbers_that_are_too_large_are_floats(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", b"t,a\n2024-01-01,1\n2024-01-01,99999999999999999999\n")
    assert source.schema.field("a").type == pa.float64()
    assert [row["a"] for row in read_range(source, 0, all_rows(source))] == [1.0, 1e20]


def test_values_in_quotes_are_texts_but_for_the_time(tmp_path: Path) -> None:
    text = '"t","a","b",c,d\n"2024-01-01","5","",1,"2"\n"2024-01-02",6,7,2,"3,""x"\n'
    source = opened(tmp_path / "a.csv", text.encode())
    types = [pa.date32(), pa.string(), pa.int64(), pa.int64(), pa.string()]
    assert source.schema.types == types
    odd = 't,a,b\n2024-01-01,5" pipe,1\n2024-01-02,x,"2"\n2024-01-03,y,3\n'
    source = opened(tmp_path / "b.csv", odd.encode())
    assert source.schema.types == [pa.date32(), pa.string(), pa.string()]


@pytest.mark.parametrize("code", ["00123", " +44", "-01", "0x1F"])
@pytest.mark.parametrize("more", ["", "é", '"x"'])
def test_a_code_behind_the_sample_is_rejected_not_cut(tmp_path: Path, code: str, more: str) -> None:
    head = f"t,s,zip\n2024-01-01,{more},4470\n" + f"2024-01-01,{more},0\n" * 3
    data = f"{head}2024-01-01,007,{code}\n2024-01-03,,9\n".encode()
    source = opened(tmp_path / "a.csv", data, block_bytes=len(head.encode()))
    rows = source.reader(0, all_rows(source)).read(["zip"])
    assert rows.table.column(0).to_pylist() == [4470, 0, 0, 0, 9]
    why = f"column zip: {code!r} is not a bigint{hint('zip')}"
    assert [r.reason for r in rows.rejects] == [f"line 6, {why}"]
