"""Files with declared columns and options: compressed, in other encodings, ORC, in folders."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.source.check import all_rows, read_range
from tidegate.connector import Source
from tidegate.errors import GateError, OptionError, SourceError
from tidegate.schema import TIME
from tidegate.source.files import FilesConnector
from tidegate.source.subscription import AS_FOUND, Reading
from tidegate.source.text import compression


def connected(path: Path, reading: Reading = AS_FOUND, **options: object) -> FilesConnector:
    return FilesConnector(str(path), str(path), "t", reading=reading, **options)  # type: ignore[arg-type]


def opened(path: Path, reading: Reading = AS_FOUND, **options: object) -> Source:
    (source,) = connected(path, reading, **options).discover()
    return source


def reading(schema: pa.Schema | None = None, **options: object) -> Reading:
    return Reading.of(schema, options, "test")


def column(source: Source, name: str) -> list[object]:
    return [
        row[name] for row in read_range(source, 0, all_rows(source)) if not isinstance(row, str)
    ]


def zstd(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(data)
    return out.getvalue().to_pybytes()


LINES = b"".join(b"2024-01-01T00:00:%02d,%d,%s\n" % (i % 60, i, b"x" * (i % 7)) for i in range(900))
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "a.csv.gz": gzip.compress,
    "a.csv.bz2": bz2.compress,
    "a.csv.zst": zstd,
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("block_bytes", [100, 10**6])
def test_a_compressed_file_is_read_as_what_is_in_it(
    tmp_path: Path, name: str, block_bytes: int
) -> None:
    (tmp_path / name).write_bytes(PACKED[name](b"t,n,s\n" + LINES))
    source = opened(tmp_path / name, block_bytes=block_bytes)
    assert all_rows(source) == 900
    assert source.ended()
    assert [r["n"] for r in read_range(source, 0, 900)] == list(range(900))
    assert [r["n"] for r in read_range(source, 300, 310)] == list(range(300, 310))
    assert len(source.times(0, 900)[0]) == 900


def test_ranges_in_order_are_one_pass_over_a_compressed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"t,n,s\n" + LINES))
    opens = []
    begin = compression._Decoder.__init__
    monkeypatch.setattr(
        compression._Decoder,
        "__init__",
        lambda self, *args: (opens.append(args), begin(self, *args))[1],
    )
    source = opened(tmp_path / "a.csv.gz", block_bytes=200)
    rows = all_rows(source)
    for start in range(0, rows, 10):  # the driver's look at times, and the tasks behind it
        source.times(start, min(start + 10, rows))
        read_range(source, start, min(start + 10, rows))
    assert len(opens) <= 5


def test_a_compressed_file_that_is_cut_or_changed_is_told(tmp_path: Path) -> None:
    whole = gzip.compress(b"t,n,s\n" + LINES)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"a\.csv\.gz: must be a whole gzip file; got Truncated"):
        opened(path)
    path.write_bytes(whole)
    source = opened(path, block_bytes=100)
    source.extend(10)
    mark = source.mark(10)  # type: ignore[attr-defined]
    opened(path, block_bytes=100).check(mark, 10, True)  # type: ignore[attr-defined]
    path.write_bytes(gzip.compress(b"t,n,s\n" + LINES.replace(b",3,", b",4,")))
    with pytest.raises(GateError, match="must not change while it is read"):
        source.extend(20)
    again = opened(path, block_bytes=100)
    with pytest.raises(SourceError, match=r"was read up to row 10 .* another content"):
        again.check(mark, 10, False)  # type: ignore[attr-defined]


def test_a_followed_folder_waits_for_a_compressed_file_to_be_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"t,n\n2024-01-01,1\n"))
    connector = connected(tmp_path, follow=True)
    assert [Path(a.id).name for a in connector.list_new()] == ["a.csv.gz"]
    packed = gzip.compress(b"t,n\n2024-01-02,2\n")
    (tmp_path / "b.csv.gz").write_bytes(packed[:-4])
    assert connector.list_new() == []
    (tmp_path / "b.csv.gz").write_bytes(packed)
    (found,) = connector.list_new()
    assert (Path(found.id).name, found.grows) == ("b.csv.gz", False)
    assert column(connector.open(found.id), "n") == [2]


def test_compression_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"t,n\n2024-01-01,1\n"))
    assert column(opened(tmp_path / "a.csv", reading(compression="GZIP")), "n") == [1]
    with pytest.raises(OptionError, match="must be a compression; got 'xz'"):
        reading(compression="xz")
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(SourceError, match="Unpack it first"):
        opened(tmp_path / "a.parquet.gz")


TEXT = 't;name;n\r\n2024-01-01;"Zoë; Łódź";1\r\n2024-01-02;€;x\r\n2024-01-03;"a\r\nb";3\r\n'


@pytest.mark.parametrize("block_bytes", [16, 10**6])
@pytest.mark.parametrize(
    ("codec", "told"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-8-sig", "utf8"),
        ("cp1250", "windows-1250"),
        ("gb18030", "gb18030"),
    ],
)
def test_other_encodings_are_read_in_blocks(
    tmp_path: Path, codec: str, told: str, block_bytes: int
) -> None:
    text = TEXT.replace("Łódź", "元") if codec == "gb18030" else TEXT
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(codec))
    schema = pa.schema([("name", pa.string()), ("n", pa.int32()), ("t", TIME)])
    source = opened(path, reading(schema, encoding=told, sep=";"), block_bytes=block_bytes)
    rows = source.reader(0, all_rows(source)).read(["name", "n"])
    name = "Zoë; 元" if codec == "gb18030" else "Zoë; Łódź"
    assert rows.table.to_pylist() == [{"name": name, "n": 1}, {"name": "a\r\nb", "n": 3}]
    assert [r.reason for r in rows.rejects] == ["line 3, column n: 'x' is not an int"]


def test_a_followed_file_in_another_encoding_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"t":"2024-01-01","s":"Ł"}\n{"t":"20'.encode("utf-16"))
    source = opened(path, reading(encoding="utf-16"), follow=True)
    assert column(source, "s") == ["Ł"]
    with path.open("ab") as file:
        file.write('24-01-02","s":"ń"}\n'.encode("utf-16-le"))
    assert column(source, "s") == ["Ł", "ń"]


def test_bytes_that_an_encoding_does_not_have_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"t,s\n2024-01-01,\xe9\n2024-01-02,\x81\n")
    source = opened(tmp_path / "a.csv", reading(encoding="cp1252"))
    rows = source.reader(0, all_rows(source)).read(["s"])
    assert rows.table.to_pylist() == [{"s": "é"}]
    assert [r.reason for r in rows.rejects] == ["line 3, column s: '\ufffd' is not CP1252"]
    with pytest.raises(OptionError, match="must not be a part of other characters in gbk"):
        opened(tmp_path / "a.csv", reading(encoding="gbk", sep="|"))


def orc_table(rows: int) -> pa.Table:
    times = pa.array([i * 1_000_000 for i in range(rows)], pa.timestamp("us", "UTC"))
    return pa.table({"T": times, "n": pa.array(range(rows), pa.int32()), "s": ["x" * 50] * rows})


def test_orc_is_read_by_stripes(tmp_path: Path) -> None:
    orc.write_table(orc_table(60_000), str(tmp_path / "a.orc"), stripe_size=50_000)
    assert orc.ORCFile(str(tmp_path / "a.orc")).nstripes > 1
    schema = pa.schema([("n", pa.int64()), ("t", TIME)])
    source = opened(tmp_path / "a.orc", reading(schema))
    assert all_rows(source) == 60_000
    assert len(source.breaks(0, 60_000) or ()) > 0
    assert column(source, "n") == list(range(60_000))
    numbers, valid = source.times(40_000, 40_002)
    assert (numbers.tolist(), valid.all()) == ([40_000_000_000, 40_001_000_000], True)
    (tmp_path / "b.orc").write_bytes(b"ORC, or not")
    with pytest.raises(SourceError, match="a whole, readable ORC file"):
        opened(tmp_path / "b.orc")


def in_folders(root: Path, write: Callable[[Path, int], None]) -> None:
    days = ["2024-01-31", "2024-02-01", "__HIVE_DEFAULT_PARTITION__"]
    for i, day in enumerate(days):
        folder = root / f"day={day}" / f"place=New%20York {i}" / f"hour={i}"
        folder.mkdir(parents=True)
        write(folder, i)


def written(form: str) -> Callable[[Path, int], None]:
    def write(folder: Path, i: int) -> None:
        table = pa.table({"t": pa.array([i], pa.timestamp("s")), "n": [i], "hour": ["own"]})
        if form == "parquet":
            pq.write_table(table, folder / "part.parquet")
        elif form == "orc":
            orc.write_table(table, str(folder / "part.orc"))
        elif form == "csv":
            (folder / "part.csv").write_text(f"t,n,hour\n1970-01-01T00:00:0{i},{i},own\n")
        else:
            (folder / "part.json").write_text(f'{{"t":"1970-01-01T00:00:0{i}","n":{i}}}\n')

    return write


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "orc"])
def test_folders_give_columns(tmp_path: Path, form: str) -> None:
    in_folders(tmp_path, written(form))
    connector = connected(tmp_path)
    fields = {"day": pa.date32(), "place": pa.string(), "hour": pa.int64()}
    assert connector.schema.names == ["t", "n", *fields]
    assert {n: connector.schema.field(n).type for n in fields} == fields
    readers = [s.reader(0, all_rows(s)) for s in connector.discover()]
    assert [r.input_file for r in readers] == [s.id for s in connector.discover()]
    found = [
        row for source in connector.discover() for row in read_range(source, 0, all_rows(source))
    ]
    assert [(r["n"], r["day"], r["place"], r["hour"]) for r in found] == [  # type: ignore[index]
        (0, date(2024, 1, 31), "New York 0", 0),
        (1, date(2024, 2, 1), "New York 1", 1),
        (2, None, "New York 2", 2),
    ]
    declared = pa.schema([("hour", pa.string()), ("n", pa.int64()), ("t", TIME)])
    connector = connected(tmp_path / "day=*", Reading(declared))
    assert connector.schema == declared
    assert [column(s, "hour") for s in connector.discover()] == [["0"], ["1"], ["2"]]


def test_names_of_folders_above_the_path_give_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a=1" / "b[2]" / "c=3"
    folder.mkdir(parents=True)
    (folder / "x.csv").write_text("t,n\n2024-01-01,1\n")
    assert connected(folder / "x.csv").schema.names == ["t", "n"]
    assert connected(folder).schema.names == ["t", "n"]
    assert connected(folder.parent).schema.names == ["t", "n", "c"]


def test_folders_that_do_not_agree_are_told(tmp_path: Path) -> None:
    for folder in ("day=1", "day=2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("t,n\n2024-01-01,1\n")
    connector = connected(tmp_path, follow=True)
    assert connector.schema.field("day").type == pa.int64()
    assert len(connector.list_new()) == 2
    (tmp_path / "day=x").mkdir()
    (tmp_path / "day=x" / "a.csv").write_text("t,n\n2024-01-01,1\n")
    message = r"column day, which folders give, must be a bigint; got day=x in .* day STRING"
    with pytest.raises(SourceError, match=message):
        connector.list_new()
    (tmp_path / "b.csv").write_text("t,n\n2024-01-01,1\n")
    with pytest.raises(
        SourceError, match="must be in folders of the same names; got no name=value and"
    ):
        connected(tmp_path)
    (tmp_path / "at=2024-01-31").mkdir()
    (tmp_path / "at=2024-01-31" / "a.csv").write_text("t,n\n2024-01-01,1\n")
    with pytest.raises(SourceError, match="the time must be a column of the files themselves"):
        FilesConnector(str(tmp_path / "at=*"), "x", "at")


def test_a_file_that_disagrees_is_told_with_its_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,zip\n2024-01-01,4470\n")
    connector = connected(tmp_path, follow=True)
    assert len(connector.list_new()) == 1
    (tmp_path / "b.csv").write_text("t,zip\n2024-01-02,4471\n\n2024-01-03,00123\n")
    message = (
        r"columns must have the types they have in .*a\.csv; got .*b\.csv, line 4, column zip: "
        r"'00123' is not a bigint, the type of the first rows; declare zip STRING to keep it "
    )
    with pytest.raises(SourceError, match=message):
        connector.list_new()
    with pytest.raises(SourceError, match=message):
        connected(tmp_path)
    schema = pa.schema([("zip", pa.string()), ("t", TIME)])
    sources = connected(tmp_path, Reading(schema)).discover()
    assert [column(source, "zip") for source in sources] == [["4470"], ["4471", "00123"]]


def test_times_in_a_form_of_their_own_are_inferred_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("01.02.2024 10:00|5|2/29/24\n01.02.2024 11:00|x|3/1/24\n")
    told = reading(header=False, sep="|", timestampFormat="dd.MM.yyyy HH:mm", dateFormat="M/d/yy")
    connector = FilesConnector(str(tmp_path / "a.csv"), "a.csv", "c1", reading=told)
    assert connector.schema == pa.schema([("c1", TIME), ("c2", pa.string()), ("c3", pa.date32())])
    (source,) = connector.discover()
    assert column(source, "c3") == [date(2024, 2, 29), date(2024, 3, 1)]
    assert [str(t)[:16] for t in column(source, "c1")] == ["2024-02-01 10:00", "2024-02-01 11:00"]


def test_the_format_of_messages_may_stand_where_files_have_it(tmp_path: Path) -> None:
    """So a query on a topic can be tried with a file."""
    (tmp_path / "a.json").write_text('{"t": "2024-01-01T00:00:00", "n": 1}\n')
    (tmp_path / "a.csv").write_text("t,n\n2024-01-01T00:00:00,1\n")
    assert column(opened(tmp_path / "a.json", reading(format="json")), "n") == [1]
    assert column(opened(tmp_path / "a.csv", reading(format="csv")), "n") == [1]
    with pytest.raises(OptionError, match="option format is for the values of messages; got CSV"):
        opened(tmp_path / "a.csv", reading(format="json"))
