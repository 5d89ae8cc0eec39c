"""Whole queries with lakehouse tables as outputs: as programs write them, and read by others."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

import tidegate as tg
from tests.sink.lake.place import DeltaLake, IcebergLake, Lake, parquet
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, SourceError
from tidegate.sink.protocol import SidePlaces
from tidegate.sink.registry import of
from tidegate.source.registry import open_uri

TIME = pa.timestamp("us", tz="UTC")
SECONDS = [0, 1, 5, 2, 6, 9]
"""The fourth row is late."""


def source(folder: Path) -> str:
    times = pa.array([s * 1_000_000 for s in SECONDS], pa.int64()).cast(TIME)
    rows = pa.table({"ts": times, "k": list("abcabc"), "v": pa.array(SECONDS, pa.int64())})
    return f"CREATE STREAM s FROM '{parquet(folder / 'in.parquet', rows)}' TIME ts;"


def test_polars_reads_the_table_and_the_late_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    sinks = {
        "delta": tg.sink.delta(tmp_path / "t"),
        "iceberg": tg.sink.iceberg(tmp_path / "catalog.db", "ns.t", warehouse=f"{tmp_path}/data"),
    }
    for kind, sink in sinks.items():
        query = tg.Session(master="none").sql(f"{source(tmp_path)} SELECT k, v FROM s")
        query.start(sink=sink, checkpoint=str(tmp_path / kind), batch_rows=2).wait()
    lake = IcebergLake(tmp_path)
    for found in (pl.scan_delta(str(tmp_path / "t")), pl.scan_iceberg(lake.load())):
        assert sorted(found.collect()["v"].to_list()) == [0, 1, 5, 6, 9]
    assert lake.files()[0].startswith(f"{tmp_path}/data/")
    for late in (DeltaLake(tmp_path).table("_late/s"), lake.table("_late/s")):
        assert late.column("v").to_pylist() == [2]


def test_several_outputs_have_tables_of_their_names(lake: Lake, tmp_path: Path) -> None:
    script = f"""{source(tmp_path)}
        INSERT INTO low SELECT k, v FROM s WHERE v < 5;
        INSERT INTO high SELECT k, v FROM s WHERE v >= 5;
    """
    (tmp_path / "q.sql").write_text(script)
    places = ("--out", lake.uri, "--checkpoint", str(tmp_path / "c"))
    assert invoke(["run", str(tmp_path / "q.sql"), "--master", "none", *places]) == 0
    names = ("high", "low") if isinstance(lake, DeltaLake) else ("_high", "_low")
    assert [lake.table(name).num_rows for name in names] == [3, 2]


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra, package, uri in (
        ("delta", "deltalake", "delta:t"),
        ("iceberg", "pyiceberg", "iceberg:c.db?table=a.b"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        install = rf"needs {package}; got .*\. Run pip install 'tidegate\[{extra}\]'\."
        with pytest.raises(OptionError, match=install):
            of(uri)
        with pytest.raises(SourceError, match=install):
            open_uri(uri, "s", "ts", False)


def test_the_summary_names_the_tables_of_late_and_rejected_rows() -> None:
    sink = of("iceberg:lake.db?table=n.t")
    assert isinstance(sink, SidePlaces)
    places = sink.side_places
    assert places["late"].endswith("lake.db, table n.t_late_STREAM, a table for each stream")
    assert places["rejected"].endswith("lake.db, table n.t_rejected")


def test_verify_says_that_a_table_was_not_looked_at_and_how_to_ask_it(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.sql").write_text(f"{source(tmp_path)} SELECT k, v FROM s")
    checkpoint = str(tmp_path / "c")
    words = ["--master", "none", "--batch-rows", "2", "--out", lake.uri]
    assert invoke(["run", str(tmp_path / "q.sql"), *words, "--checkpoint", checkpoint]) == 0
    capsys.readouterr()
    assert invoke(["state", checkpoint, "--verify"]) == 0
    assert "newest batch of the output: NOT LOOKED AT" in capsys.readouterr().out
    assert invoke(["state", checkpoint, "--verify", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    output = facts["verified"]["outputs"][""]
    assert (output["looked_at"], output["checked"], output["past"]) == (False, False, None)
    name = facts["meta"]["identity"]
    if isinstance(lake, IcebergLake):
        newest = int(lake.load().properties[f"tidegate.{name}.batch"])
    else:
        newest = DeltaTable(str(lake.folder / "t")).transaction_version(f"tidegate/{name}")
    assert newest == facts["state"]["batch"]


NAMED = """
import tidegate as tg
from tidegate.cli.main import invoke

run = "run q.sql --master none --out iceberg:prod?table=ns.t --checkpoint c --lineage l.jsonl"
assert invoke(run.split()) == 0
stream = tg.Session(master="none").stream("iceberg:prod?table=ns.t", time="ts", name="r")
print(stream.to_arrow().select(["k", "v"]).to_pydict())
"""


def test_a_catalog_of_the_configuration_of_pyiceberg_is_written_to_and_read(tmp_path: Path) -> None:
    """In a process of its own, because pyiceberg reads its file once; what is in it stays there."""
    secret = "hunter2-of-the-catalog"
    home = tmp_path / "home"
    home.mkdir()
    home.joinpath(".pyiceberg.yaml").write_text(
        "catalog:\n  prod:\n    type: sql\n"
        f"    uri: sqlite:///{home}/catalog.db\n    warehouse: file://{home}/data\n"
        f"    s3.secret-access-key: {secret}\n"
    )
    work = tmp_path / "work"
    work.mkdir()
    (work / "q.sql").write_text(f"{source(work)} SELECT ts, k, v FROM s")
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", NAMED],
        check=False,
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = ast.literal_eval(done.stdout.splitlines()[-1])
    assert found == {"k": list("abcbc"), "v": [0, 1, 5, 6, 9]}
    told = [json.loads(line) for line in (work / "l.jsonl").read_text().splitlines()]
    (output,) = told[-1]["outputs"]
    assert (output["namespace"], output["name"]) == ("iceberg:prod", "ns.t")
    held = [p.read_bytes() for p in work.rglob("*") if p.is_file()]
    assert len(held) > 5
    assert not any(
        secret.encode() in data for data in [*held, done.stdout.encode(), done.stderr.encode()]
    )
    catalog = SqlCatalog(
        "prod", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/data"
    )
    assert catalog.load_table("ns.t").scan().to_arrow().num_rows == 5
