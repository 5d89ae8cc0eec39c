from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.source.check import all_rows, read_range
from tidegate.connector import Source
from tidegate.errors import GateError, SourceError
from tidegate.schema import TIME
from tidegate.source.files import FilesConnector


def connect(path: Path | str, follow: bool = False) -> FilesConnector:
    return FilesConnector(str(path), f"stream s, {path}", "t", follow)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_parquet(path: Path, **columns: pa.Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    times = pa.array([1], pa.timestamp("us"))
    pq.write_table(pa.table({"t": times, **columns}), path)


def values(source: Source, column: str = "i") -> list[object]:
    rows = read_range(source, 0, all_rows(source))
    return [row if isinstance(row, str) else row[column] for row in rows]


def test_a_folder_is_one_source_per_file_by_name(tmp_path: Path) -> None:
    for name in ("batch=00000002/part-0.csv", "batch=00000001/part-1.csv", "batch=00000001/a.csv"):
        write(tmp_path / name, "t,i\n2024-01-01,1\n")
    for name in ("_SUCCESS", ".hidden.csv", "_late/x.csv", ".tmp/y.csv"):
        write(tmp_path / name, "junk")
    sources = connect(tmp_path).discover()
    assert [s.id for s in sources] == [
        f"{tmp_path}/batch=00000001/a.csv",
        f"{tmp_path}/batch=00000001/part-1.csv",
        f"{tmp_path}/batch=00000002/part-0.csv",
    ]


def test_a_glob_takes_files_and_folders(tmp_path: Path) -> None:
    for name in ("a/1.csv", "b/2.csv", "c3.csv", "d.txt"):
        write(tmp_path / name, "t,i\n2024-01-01,1\n")
    found = connect(f"{tmp_path}/[abc]*").discover()
    assert [Path(s.id).name for s in found] == ["1.csv", "2.csv", "c3.csv"]
    found = connect(f"{tmp_path}/**/*.csv").discover()
    assert len(found) == 3


def test_a_path_with_brackets_that_exists_is_a_path(tmp_path: Path) -> None:
    path = write(tmp_path / "a[1].csv", "t,i\n2024-01-01,1\n")
    assert [s.id for s in connect(path).discover()] == [str(path)]


def test_text_types_of_a_folder_widen(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "t,i,x,e\n2024-01-01,1,1,\n")
    write(tmp_path / "2.csv", "i,t,e,x\n2,2024-01-01T00:00:00,7,2.5\n")
    write(tmp_path / "3.csv", "t,i,x,e\n")
    connector = connect(tmp_path)
    assert connector.schema == pa.schema(
        [("t", TIME), ("i", pa.int64()), ("x", pa.float64()), ("e", pa.int64())]
    )
    assert [values(s, "x") for s in connector.discover()] == [[1.0], [2.5], []]
    assert [values(s) for s in connector.discover()] == [[1], [2], []]


def test_objects_of_a_folder_may_lack_keys(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", '{"t":"2024-01-01","i":1}\n')
    write(tmp_path / "2.jsonl", '{"t":"2024-01-02","j":{"k":1}}\n')
    connector = connect(tmp_path)
    assert connector.schema.names == ["t", "i", "j"]
    assert [values(s) for s in connector.discover()] == [[1], [None]]
    assert [values(s, "j") for s in connector.discover()] == [[None], [{"k": 1}]]


def test_parquet_files_may_differ_in_order_and_in_columns_of_nulls(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", i=pa.nulls(1), s=pa.array(["a"]))
    write_parquet(tmp_path / "2.parquet", s=pa.array(["b"], pa.large_string()), i=pa.array([5]))
    connector = connect(tmp_path)
    assert connector.schema.field("i").type == pa.int64()
    assert [values(s) for s in connector.discover()] == [[None], [5]]


def test_files_that_disagree_are_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "1.parquet", i=pa.array([1], pa.int32()))
    write_parquet(tmp_path / "2.parquet", i=pa.array([1], pa.int64()))
    with pytest.raises(SourceError) as raised:
        connect(tmp_path)
    message = str(raised.value)
    assert "column i must have one type in all files" in message
    assert f"bigint in {tmp_path}/2.parquet and int in {tmp_path}/1.parquet" in message


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("t,i\n2024-01-01,1\n", "2.csv without column x, which"),
        ("t,i,x,y\n2024-01-01,1,1,1\n", "1.csv without column y, which"),
        ("t,i,x\n2024-01-01,a,1\n", "2.csv, line 2, column i: 'a' is not a bigint"),
    ],
)
def test_text_files_that_disagree_are_named(tmp_path: Path, second: str, message: str) -> None:
    write(tmp_path / "1.csv", "t,i,x\n2024-01-01,1,1\n")
    write(tmp_path / "2.csv", second)
    with pytest.raises(SourceError) as raised:
        connect(tmp_path)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("files", "path", "message"),
    [
        (["a.csv"], "b.csv", "the file or folder must be there"),
        (["a.csv"], "sub/b.csv", "There is no folder"),
        ([], "", "the folder must hold a file at least"),
        (["_a.csv"], "", "the folder must hold a file at least"),
        (["a.csv"], "*.parquet", "the glob must match a file at least"),
        (["a.txt"], "a.txt", "a file's name must end in .parquet, .csv"),
        (["a.csv", "b.txt"], "", "b.txt. Rename it to say its format"),
        (["a.csv.xz"], "a.csv.xz", "Unpack it first"),
        (["a.csv", "b.json"], "", "all files must be of one format"),
    ],
)
def test_paths_that_are_refused(tmp_path: Path, files: list[str], path: str, message: str) -> None:
    for name in files:
        write(tmp_path / name, "t,i\n2024-01-01,1\n")
    with pytest.raises(SourceError) as raised:
        connect(tmp_path / path)
    assert message in str(raised.value)


def test_empty_text_files_have_no_say(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "")
    write(tmp_path / "2.csv", "t,i\n2024-01-01,1\n")
    assert [values(s) for s in connect(tmp_path).discover()] == [[1]]
    write(tmp_path / "2.csv", "")
    with pytest.raises(SourceError, match="a header line must be there; got empty files only"):
        connect(tmp_path)


def test_new_files_of_a_followed_folder_come_at_the_end(tmp_path: Path) -> None:
    write(tmp_path / "5.csv", "t,i\n2024-01-01,5\n2024-01-01,6")
    connector = connect(tmp_path, follow=True)
    assert connector.live()
    (first,) = connector.discover()
    assert values(first) == [5]
    assert not first.ended()
    write(tmp_path / "1.csv", "t,i\n2024-01-02,1\n")
    write(tmp_path / "2.csv", "t,i\n2024-01-03,2\n")
    found = connector.discover()
    assert [Path(s.id).name for s in found] == ["5.csv", "1.csv", "2.csv"]
    assert [values(s) for s in found] == [[5, 6], [1], [2]]
    assert [s.ended() for s in found] == [True, True, False]
    with (tmp_path / "2.csv").open("a") as file:
        file.write("2024-01-03,3\n")
    assert values(connector.discover()[2]) == [2, 3]


def test_a_file_that_grows_behind_a_later_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "t,i\n2024-01-01,5\n")
    connector = connect(tmp_path, follow=True)
    write(tmp_path / "2.csv", "t,i\n2024-01-02,6\n")
    connector.discover()
    with (tmp_path / "1.csv").open("a") as file:
        file.write("2024-01-03,3\n")
    with pytest.raises(GateError, match="must not grow after a later file has appeared"):
        connector.discover()


def test_files_being_written_are_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_parquet(tmp_path / "1.parquet", i=pa.array([1]))
    connector = connect(tmp_path, follow=True)
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "2.parquet").write_bytes(whole[:50])
    write(tmp_path / "3.parquet.tmp", "")
    with caplog.at_level(logging.WARNING):
        assert len(connector.discover()) == 1
        assert len(connector.discover()) == 1
    assert caplog.text.count("waiting for") == 1
    (tmp_path / "2.parquet").write_bytes(whole)
    found = connector.discover()
    assert [values(s) for s in found] == [[1], [1]]
    assert all(s.ended() for s in found)


def test_a_later_file_must_fit_the_schema(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "t,i,e\n2024-01-01,5,\n")
    connector = connect(tmp_path, follow=True)
    write(tmp_path / "2.csv", "t,i,e\n2024-01-02,6,9\n")
    assert values(connector.discover()[1], "e") == ["9"]
    write(tmp_path / "3.csv", "t,i,e\n2024-01-03,6.5,\n")
    with pytest.raises(SourceError, match=r"3\.csv, line 2, column i: '6.5' .* i DOUBLE"):
        connector.discover()


def test_a_text_file_without_a_complete_line_is_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "t,i\n2024-01-01,5\n")
    connector = connect(tmp_path, follow=True)
    write(tmp_path / "2.csv", "t,")
    assert len(connector.discover()) == 1
    write(tmp_path / "2.csv", "t,i\n2024-01-02,6\n")
    assert [values(s) for s in connector.discover()] == [[5], [6]]
