"""Lakehouse tables on an S3 server: written, killed, read back; keys are in no file and no text."""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from deltalake import DeltaTable

import tidegate as tg
from tests.s3.server import BUCKET, KEYS, Server
from tests.sink.lake.place import parquet
from tests.sink.lake.test_lake_sink import SCHEMA, NoKeep, written
from tests.sink.lake.test_lake_sink import rows as some
from tests.source.lake.test_lake_source import answer, rows
from tidegate.batch import BatchId
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, SourceError
from tidegate.sink.lake.sink import LakeSink
from tidegate.sink.protocol import Opening
from tidegate.sink.registry import of
from tidegate.source.registry import open_uri

QUERY = "SELECT k, v FROM s WHERE v % 2 = 0"


@pytest.fixture
def uris(server: Server, path: str, tmp_path: Path) -> dict[str, str]:
    server_is = f"scheme=http&endpoint_override={server.address}"
    warehouse = f"table=ns.t&warehouse=s3://{BUCKET}/{path}/warehouse&{server_is}"
    return {
        "delta": f"delta+s3://{BUCKET}/{path}/t?{server_is}",
        "iceberg": f"iceberg:{tmp_path}/catalog.db?{warehouse}",
    }


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_is_written_over_two_runs_and_read_back(
    kind: str,
    uris: dict[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    server: Server,
) -> None:
    """The secret is in the environment, and in nothing that the runs leave or say."""
    caplog.set_level(logging.DEBUG, logger="tidegate")
    uri, folder = uris[kind], tmp_path / "in"
    folder.mkdir()
    said = io.StringIO()
    script = tmp_path / "query.sql"
    script.write_text(f"CREATE STREAM s FROM '{folder}' TIME ts;\n{QUERY};\n")
    for first in (0, 100):
        parquet(folder / f"{first:03d}.parquet", rows(first, 100))
        checkpoint = str(tmp_path / "c")
        command = ["run", str(script), "--out", uri, "--checkpoint", checkpoint, "--master", "none"]
        with redirect_stdout(said), redirect_stderr(said):
            code = invoke([*command, "--batch-rows", "30", "--available-now"])
        assert code == 0, said.getvalue()
    with redirect_stdout(said):
        assert invoke(["explain", str(script), "--stream", f"s={uri}", "--time", "s=ts"]) == 0
    found = answer(uri, "SELECT k, v FROM s")
    assert [row["v"] for row in found] == list(range(0, 199, 2))
    if kind == "delta":
        options = {"aws_endpoint": f"http://{server.address}", "aws_allow_http": "true"}
        place, _, _ = uri.removeprefix("delta+").partition("?")
        table = DeltaTable(place, storage_options={**options, "aws_region": "us-east-1"})
        assert table.to_pyarrow_table().num_rows == 100
    secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    assert secret not in said.getvalue() + caplog.text
    left = [p for top in (tmp_path, server.folder) for p in top.rglob("*") if p.is_file()]
    assert len(left) > 10
    assert not [p for p in left if secret.encode() in p.read_bytes()]


def test_two_runs_at_once_on_s3_add_a_batch_once(uris: dict[str, str]) -> None:
    """The server lets one of two write the next entry of the log."""

    def opened(owner: int, newest: int | None) -> LakeSink:
        sink = of(uris["delta"])
        assert isinstance(sink, LakeSink)
        at = None if newest is None else BatchId(newest)
        sink.open(Opening(SCHEMA, None, at, NoKeep(), owner, checkpoint="c1"))
        return sink

    old = opened(0, None)
    receipts = written(old, 0, some(1))
    new = opened(1, 0)
    new.publish(BatchId(0), receipts)
    old.publish(BatchId(0), receipts)
    new.publish(BatchId(1), written(new, 1, some(2)))
    with pytest.raises(tg.SinkError, match="than this run, 0; got run 1"):
        old.publish(BatchId(2), written(old, 2, some(3)))
    assert [row["n"] for row in answer(uris["delta"], "SELECT n FROM s")] == [1, 2]


def test_keys_in_a_uri_are_refused() -> None:
    for uri in (
        "delta+s3://key:secret@bucket/t",
        "iceberg:x.db?table=a.b&warehouse=s3://key:secret@bucket/t",
    ):
        with pytest.raises(OptionError, match="a URI must be without keys and passwords") as e:
            of(uri)
        assert "secret" not in str(e.value)
        with pytest.raises(SourceError, match="a URI must be without keys and passwords") as s:
            open_uri(uri, "rides", "ts", False)
        assert "secret" not in str(s.value)
