"""Input on an S3 server: what is read, from where, and what is said where it cannot be."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.s3.server import Server
from tests.source.check import all_rows, read_range
from tidegate.connector import Source
from tidegate.errors import GateError, RunError, SourceError
from tidegate.source.registry import open_uri

TIMES = [1_700_000_000_000_000 + i * 1_000_000 for i in range(2000)]


@pytest.fixture
def folder(server: Server, path: str) -> Path:
    made = server.folder / path
    made.mkdir(parents=True)
    return made


def write(folder: Path, format_: str) -> None:
    table = pa.table({"t": pa.array(TIMES, pa.timestamp("us", tz="UTC")), "i": range(len(TIMES))})
    if format_ == "parquet":
        pq.write_table(table, folder / "a.parquet", row_group_size=300)
        return
    rows = table.to_pylist()
    if format_ == "csv":
        text = "t,i\n" + "".join(f"{r['t'].isoformat()},{r['i']}\n" for r in rows)
    else:
        text = "".join(f'{{"t": "{r["t"].isoformat()}", "i": {r["i"]}}}\n' for r in rows)
    (folder / f"a.{format_}").write_text(text)


def sources(uri: str) -> list[Source]:
    return list(open_uri(uri, "r", "t", False).discover())


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_rows_are_those_of_a_local_file(
    folder: Path, location: str, path: str, format_: str
) -> None:
    write(folder, format_)
    (there,), (here,) = sources(location), sources(str(folder))
    assert there.id == f"s3://bucket/{path}/a.{format_}"
    assert all_rows(there) == all_rows(here) == len(TIMES)
    assert read_range(there, 250, 1900) == read_range(here, 250, 1900)
    assert there.times(5, 700)[0].tolist() == TIMES[5:700]


def test_a_task_connects_by_itself(folder: Path, location: str) -> None:
    """What goes to it is small: the URI and where the rows are."""
    write(folder, "parquet")
    (source,) = sources(location)
    sent = pickle.dumps(source.reader(0, 10))
    assert len(sent) < 2000
    assert pickle.loads(sent).read(["i"]).table.column("i").to_pylist() == list(range(10))


def test_the_endpoint_of_the_environment(
    folder: Path, server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "csv")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{server.address}")
    for uri in (f"s3://bucket/{path}/a.csv", f"s3a://bucket/{path}/*.csv", f"S3://bucket/{path}/"):
        (source,) = sources(uri)
        assert source.id == f"s3://bucket/{path}/a.csv"


def test_an_object_that_is_replaced_while_it_is_read(folder: Path, location: str) -> None:
    write(folder, "parquet")
    (source,) = sources(location)
    reader = source.reader(0, 10)
    pq.write_table(pa.table({"t": TIMES, "i": TIMES, "more": TIMES}), folder / "a.parquet")
    with pytest.raises(GateError, match="a file must not change while it is read"):
        reader.read(["i"])


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("bucket", "a file must be there, or below it; got none at s3://bucket/"),
        ("another", "must be readable; got NO_SUCH_BUCKET: .* Check the name of the bucket"),
    ],
)
def test_what_is_not_there(location: str, bucket: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        sources(location.replace("//bucket/", f"//{bucket}/"))


def test_credentials_that_are_wrong(
    folder: Path, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "csv")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(
        SourceError, match=r"must be readable; got ACCESS_DENIED\. Give credentials"
    ):
        sources(location)


def test_nobody_answers(location: str, server: Server) -> None:
    uri = location.replace(server.address, "127.0.0.1:1")
    with pytest.raises(SourceError, match=r"got NETWORK_CONNECTION: .* Check the network and the"):
        sources(uri)


def test_what_fails_in_a_run_can_go_on_later(folder: Path, location: str, tmp_path: Path) -> None:
    """It is no mistake of who has started it: exit 1, not 2."""
    write(folder, "parquet")
    (source,) = sources(location)
    reader = source.reader(0, 10)
    (folder / "a.parquet").rename(tmp_path / "gone")
    with pytest.raises(RunError, match=r"a\.parquet: must be readable; got no such file"):
        reader.read(["t"])


def test_an_object_that_is_damaged(folder: Path, location: str) -> None:
    write(folder, "parquet")
    data = bytearray((folder / "a.parquet").read_bytes())
    data[4:2000] = bytes(1996)
    (folder / "a.parquet").write_bytes(data)
    (source,) = sources(location)
    with pytest.raises(SourceError, match="must be a whole, readable Parquet file"):
        source.times(0, 300)
