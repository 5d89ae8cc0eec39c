"""Tables of lakehouses as streams: as files of the same rows, over any cut, restart and commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import tidegate as tg
from tests.crash.process import wait_for
from tests.sink.lake.place import DeltaLake, IcebergLake, Lake, parquet
from tests.sink.lake.test_lake_sink import opened, written
from tests.sink.lake.test_lake_sink import rows as sink_rows
from tidegate.batch import BatchId
from tidegate.errors import GateError, SourceError

TIME = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000
WINDOWS = "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 10 SECONDS] GROUP BY k"
PLAIN = "SELECT k, v FROM s"


def rows(first: int, count: int = 20, step: int = 1) -> pa.Table:
    """One row for each second from `first` on."""
    seconds = [first + n * step for n in range(count)]
    return pa.table(
        {
            "ts": pa.array([s * SECOND for s in seconds], pa.int64()).cast(TIME),
            "k": [f"k{s % 3}" for s in seconds],
            "v": pa.array(seconds, pa.int64()),
        }
    )


def make(lake: Lake, first: pa.Table) -> None:
    """The table with its first commit, made by another program."""
    if isinstance(lake, IcebergLake):
        opened(lake, schema=first.schema).begin(BatchId(0))
        lake.append(first)
    else:
        lake.append(first)


def answer(source: str | Sequence[str], query: str, **more: Any) -> list[dict[str, Any]]:
    """The rows of a run."""
    listed = [source] if isinstance(source, str) else source
    script = f"CREATE STREAM s FROM {', '.join(map(repr, listed))} TIME ts; {query}"
    sink = tg.sink.memory()
    tg.Session(master="none").sql(script).start(sink=sink, **more).wait()
    return sink.table().to_pylist()


class Runs:
    """Runs of one query on a checkpoint, each over what there is; files have all their rows."""

    def __init__(self, lake: Lake, query: str = WINDOWS) -> None:
        self.folder = lake.folder / "runs"
        self.script = f"CREATE STREAM s FROM '{lake.uri}' TIME ts; {query}"

    def go(self, **more: Any) -> list[dict[str, Any]]:
        more = {"available_now": True, **more, "checkpoint": str(self.folder / "c")}
        query = tg.Session(master="none").sql(self.script)
        query.start(sink=str(self.folder / "out"), **more).wait()
        files = sorted(self.folder.glob("out/batch=*/*.parquet"))
        return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.parametrize("batch_rows", [7, 25, 1000])
def test_the_same_rows_as_from_files_over_any_cut(
    lake: Lake, tmp_path: Path, batch_rows: int
) -> None:
    """Three commits, whose rows lie between each other."""
    parts = [rows(0, 30, 2), rows(1, 30, 2), rows(60, 20)]
    make(lake, parts[0])
    for part in parts[1:]:
        lake.append(part)
    files = [str(parquet(tmp_path / f"{n}.parquet", part)) for n, part in enumerate(parts)]
    for query in (WINDOWS, PLAIN):
        expected = answer(files, query, batch_rows=batch_rows)
        assert len(expected) > 20
        assert answer(lake.uri, query, batch_rows=batch_rows) == expected


def test_what_a_sink_has_written_is_read_back_in_order(lake: Lake, tmp_path: Path) -> None:
    path = parquet(tmp_path / "in.parquet", rows(0, 500))
    script = f"CREATE STREAM s FROM '{path}' TIME ts; SELECT k, v FROM s WHERE v % 2 = 0"
    query = tg.Session(master="none").sql(script)
    query.start(sink=lake.uri, checkpoint=str(tmp_path / "c"), batch_rows=60).wait()
    expected = answer(str(path), "SELECT k, v FROM s WHERE v % 2 = 0")
    assert [{n: row[n] for n in ("ts", "k", "v")} for row in lake.rows()] == expected
    assert answer(lake.uri, PLAIN) == expected


def test_a_run_goes_on_with_what_was_committed_since(lake: Lake) -> None:
    """Rows that wait for the frontier stay known, though their files were read to the end."""
    make(lake, rows(0))
    runs = Runs(lake)
    counts = [len(runs.go())]
    for first in (20, 40, 60):
        lake.append(rows(first))
        counts.append(len(runs.go(batch_rows=7)))
    assert counts == sorted(set(counts))
    before = sorted(runs.folder.rglob("manifest*"))
    assert len(runs.go()) == counts[-1]
    assert sorted(runs.folder.rglob("manifest*")) == before
    whole = answer(lake.uri, WINDOWS)
    assert runs.go(available_now=False) == whole
    assert len(whole) > counts[-1]


def test_following_takes_commits_as_they_come(lake: Lake) -> None:
    make(lake, rows(0))
    sink = tg.sink.memory()
    script = f"CREATE STREAM s FROM '{lake.uri}' TIME ts; {PLAIN}"
    query = tg.Session(master="none").sql(script).start(sink=sink, follow=True)
    try:
        for first in (20, 40):
            lake.append(rows(first))
        wait_for(lambda: sink.table().num_rows >= 59, "rows that were committed have come")
    finally:
        query.stop()
    assert sink.table().column("v").to_pylist()[:59] == list(range(59))


def test_commits_that_rewrite_rows_are_passed_over(tmp_path: Path) -> None:
    """Rows that were read are in another file now; those that wait are read where they were."""
    lake = DeltaLake(tmp_path)
    make(lake, rows(0))
    lake.append(rows(20))
    runs = Runs(lake)
    runs.go()
    DeltaTable(lake.path).optimize.compact()
    assert len(lake.files()) == 1
    lake.append(rows(40))
    path = parquet(tmp_path / "in.parquet", rows(0, 60))
    assert runs.go(available_now=False) == answer(str(path), WINDOWS)


def test_rows_that_are_removed_are_refused(lake: Lake) -> None:
    make(lake, rows(0))
    runs = Runs(lake)
    runs.go()
    lake.delete("v = 3")
    with pytest.raises(GateError, match=r"rows must only be added to a table .* got version"):
        runs.go()
    assert len(answer(lake.uri, PLAIN)) == 19


def test_from_a_version_a_time_or_now_on(lake: Lake) -> None:
    make(lake, rows(0))
    lake.append(rows(20))
    lake.append(rows(40))
    mark = "&" if "?" in lake.uri else "?"

    def first(said: str) -> list[int]:
        return [row["v"] for row in answer(f"{lake.uri}{mark}from={said}", PLAIN)]

    if isinstance(lake, IcebergLake):
        chain = sorted(lake.load().metadata.snapshots, key=lambda s: s.sequence_number or 0)
        version, time = chain[-1].snapshot_id, chain[-1].timestamp_ms
    else:
        version = DeltaTable(lake.path).version()
        time = DeltaTable(lake.path).history(1)[0]["timestamp"]
    moment = str(pa.scalar(time, pa.timestamp("ms"))).replace(" ", "T")
    assert first(str(version)) == list(range(40, 60))
    assert first(moment) == list(range(40, 60))
    assert first("earliest") == list(range(60))
    with pytest.raises(SourceError, match=r"from=latest .* must be followed"):
        first("latest")
    with pytest.raises(SourceError, match="from must be earliest, latest, a version or a time"):
        first("yesterday")
    with pytest.raises(SourceError, match=r"must be there; got from=99999"):
        first("99999")


def test_columns_that_were_added_are_null_before(lake: Lake) -> None:
    sink = opened(lake)
    sink.publish(BatchId(0), written(sink, 0, sink_rows(1)))
    wider = sink_rows(1).schema.append(pa.field("x", pa.float64()))
    more = opened(lake, newest=0, owner=1, schema=wider)
    more.publish(BatchId(1), written(more, 1, sink_rows(2, schema=wider)))
    found = answer(lake.uri, "SELECT n, x FROM s")
    assert [(row["n"], row["x"]) for row in found] == [(1, None), (2, 2.0)]


def test_joined_as_a_table(lake: Lake, tmp_path: Path) -> None:
    make(lake, pa.table({"ts": rows(0, 3)["ts"], "k": ["k0", "k1", "k2"], "v": [1, 2, 3]}))
    lake.delete("v = 3")
    path = parquet(tmp_path / "in.parquet", rows(0, 6))
    script = f"""
        CREATE STREAM s FROM '{path}' TIME ts;
        CREATE TABLE t FROM '{lake.uri}' REFRESH EVERY 1 HOUR;
        SELECT s.v, t.v AS factor FROM s JOIN t ON s.k = t.k
    """
    sink = tg.sink.memory()
    tg.Session(master="none").sql(script).start(sink=sink).wait()
    assert sink.table().column("factor").to_pylist() == [1, 2, 1, 2]


class TestDelta:
    def test_names_of_many_commits_are_moved_out_of_the_manifest(self, tmp_path: Path) -> None:
        lake = DeltaLake(tmp_path)
        make(lake, rows(0, 1))
        for first in range(1, 80):
            lake.append(rows(first, 1))
        runs = Runs(lake, PLAIN)
        seen = []
        for first in (80, 90, 100):
            seen.append(len(runs.go()))
            lake.append(rows(first, 10))
        assert [row["v"] for row in runs.go(available_now=False)] == list(range(110))
        assert seen == [79, 89, 99]

    def test_partitions(self, tmp_path: Path) -> None:
        place = tmp_path / "t"
        write_deltalake(place, rows(0, 9), partition_by=["k"])
        found = answer(f"delta:{place}", PLAIN)
        assert [row["k"] for row in found] == [f"k{n % 3}" for n in range(9)]

    def test_a_log_that_was_cut_off(self, tmp_path: Path) -> None:
        lake = DeltaLake(tmp_path)
        make(lake, rows(0))
        runs = Runs(lake)
        runs.go()
        lake.append(rows(20))
        lake.append(rows(40))
        DeltaTable(lake.path).create_checkpoint()
        (Path(lake.path) / "_delta_log" / f"{1:020d}.json").unlink()
        with pytest.raises(SourceError, match="its log must go back to version 1; got version 2"):
            runs.go()

    def test_what_is_not_a_table(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="must be a table of Delta Lake; got none"):
            answer(f"delta:{tmp_path}", PLAIN)


class TestIceberg:
    def test_snapshots_that_expired(self, tmp_path: Path) -> None:
        lake = IcebergLake(tmp_path)
        make(lake, rows(0))
        runs = Runs(lake)
        runs.go()
        for first in (20, 40):
            lake.append(rows(first))
        table = lake.load()
        newest = table.current_snapshot()
        assert newest is not None
        older = [s.snapshot_id for s in table.metadata.snapshots if s != newest]
        table.maintenance.expire_snapshots().by_ids(older).commit()
        with pytest.raises(SourceError, match=r"its log must go back to .* that have expired"):
            runs.go()

    def test_a_column_that_was_renamed(self, tmp_path: Path) -> None:
        lake = IcebergLake(tmp_path)
        make(lake, rows(0))
        with lake.load().update_schema() as update:
            update.rename_column("v", "w")
        with pytest.raises(SourceError, match="names that they had at first; got v, which is w"):
            answer(lake.uri, "SELECT k FROM s")

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="the table must be there; got iceberg:"):
            answer(f"iceberg:{tmp_path}/none.db?table=a.b", PLAIN)
