"""From a query and options to a loop: where tasks run, what is opened, what is left behind."""

from __future__ import annotations

import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.driver.scene import COUNTS, PASSED, SCHEMA, csv, memory, plan_of
from tidegate.connector import Connector
from tidegate.driver.connection import connections_of
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError, SourceError
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.folder.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

HERE = Place("none")


def with_uris(plan: Plan, *uris: str) -> Plan:
    return replace(plan, streams=tuple(replace(s, uris=uris) for s in plan.streams))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders of runs without a checkpoint go."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("master", "instances"),
    [("none", 1), ("local", 1), ("local[3]", 3), ("local[3,4]", 3), ("spark://host:7077", 2)],
)
def test_as_many_instances_as_tasks_run_at_once(master: str, instances: int) -> None:
    assert Place(master).default_instances() == instances


@pytest.mark.parametrize("master", ["lokal", "local[x]", "", "none ", "local[2"])
def test_a_master_that_cannot_be_is_refused(master: str) -> None:
    with pytest.raises(OptionError, match="--master: must be none, local"):
        Place(master)


def test_spark_is_not_started_on_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """There its context would take Ctrl-C for itself."""
    threads = []

    def connect(master: str, conf: dict[str, str]) -> str:
        threads.append(threading.current_thread())
        return master

    spark = SimpleNamespace(connect=connect)
    monkeypatch.setitem(sys.modules, "tidegate.execute.spark.session.session", spark)
    assert Place("local[1]").connected().session == "local[1]"
    assert threads != [threading.main_thread()]


def test_without_a_checkpoint_the_state_goes_with_the_loop(temporary: Path) -> None:
    plan = with_uris(plan_of(COUNTS), "m")
    source = memory((1, "a", 1))
    loop = prepare(plan, HERE, {None: MemorySink()}, RunOptions(), connectors={"m": source})
    loop.step()
    (folder,) = temporary.iterdir()
    assert (folder / "meta.json").exists()
    loop.close()
    assert list(temporary.iterdir()) == []


def test_a_loop_that_cannot_start_leaves_no_folder(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=00000000").mkdir(parents=True)
    plan = with_uris(plan_of(COUNTS), "m")
    with pytest.raises(OptionError, match="a new run needs an output folder without results"):
        prepare(
            plan, HERE, {None: FileSink(tmp_path / "out")}, RunOptions(), connectors={"m": memory()}
        )
    with pytest.raises(SourceError, match=r"gone\.csv"):
        prepare(with_uris(plan, "gone.csv"), HERE, {None: MemorySink()}, RunOptions())
    assert list(temporary.iterdir()) == []


def test_the_checkpoint_stays(tmp_path: Path) -> None:
    plan = with_uris(plan_of(COUNTS), "m")
    source = memory((1, "a", 1), end=True)
    place = tmp_path / "c"
    prepare(plan, HERE, {None: MemorySink()}, RunOptions(), place, {"m": source}).run()
    latest = Store.open(place).latest()
    assert latest is not None
    assert latest.finished


def two_streams(*uris: str) -> Plan:
    """A query over two streams that have the same sources."""
    streams = {n: StreamDef(n, uris, "ts", 0, None, SCHEMA) for n in "st"}
    return lower(bind(read_script("SELECT k, v FROM s UNION ALL SELECT k, v FROM t"), streams))


def test_every_uri_of_every_stream_is_an_inlet(tmp_path: Path) -> None:
    a, b = (csv(tmp_path / f"{n}.csv", (1, n, 1)) for n in "ab")
    plan = two_streams(a, b)
    connections = connections_of(plan.streams, {}, RunOptions())
    assert [(i.stream, i.uri) for i in connections] == [(0, a), (0, b), (1, a), (1, b)]
    assert len({id(i.connector) for i in connections}) == 4


def test_a_stream_that_is_read_twice_is_opened_once(tmp_path: Path) -> None:
    a, b = (csv(tmp_path / f"{n}.csv", (1, n, 1)) for n in "ab")
    plan = with_uris(plan_of(f"{PASSED} UNION ALL {PASSED}"), a, b)
    connections = connections_of(plan.streams, {}, RunOptions())
    assert [(i.stream, i.uri) for i in connections] == [(0, a), (0, b)]
    sink = MemorySink()
    summary = prepare(plan, HERE, {None: sink}, RunOptions()).run()
    assert (summary.counters["rows_in"], summary.counters["rows_out"]) == (2, 4)
    assert sink.table().column("k").to_pylist() == ["a", "b", "a", "b"]


class Spool(Connector):
    """A connector that must be another one for every place and every run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.schema = memory().schema
        self.closed = False

    def for_run(self, use: int) -> Spool:
        return Spool(f"{self.name}/{use}")

    def attach(self, store: Store, follow: bool, available_now: bool = False) -> None:
        if self.name.endswith("1"):
            raise SourceError("spool", "must start", "a second one")

    def close(self) -> None:
        self.closed = True

    def discover(self) -> list[Any]:
        return []

    def live(self) -> bool:
        return True


def test_a_spooling_source_is_opened_for_each_stream(tmp_path: Path) -> None:
    plan = two_streams("f")
    connections = connections_of(plan.streams, {"f": Spool("f")}, RunOptions())
    spools = [i.connector for i in connections]
    assert [s.name for s in spools if isinstance(s, Spool)] == ["f/0", "f/1"]
    with pytest.raises(SourceError, match="spool: must start"):
        Loop(
            plan,
            connections,
            Store.open(tmp_path),
            {None: MemorySink()},
            HERE.runner(),
            RunOptions(),
        )
    assert all(s.closed for s in spools if isinstance(s, Spool))


def test_a_query_of_a_script_runs_over_other_data(tmp_path: Path) -> None:
    script = read_script(f"CREATE STREAM s FROM 'nowhere.csv' TIME at; {PASSED}")
    path = csv(tmp_path / "s.csv", (1, "a", 1))
    streams = streams_of(script, uris={"S": [path]}, times={"s": "ts"})
    plan = plan_for(bind(script, streams), HERE)
    sink = MemorySink()
    prepare(plan, HERE, {None: sink}, RunOptions()).run()
    assert sink.table().num_rows == 1


def test_pairs_without_an_index_are_a_warning_at_start(caplog: pytest.LogCaptureFixture) -> None:
    script = read_script(
        "CREATE STREAM r FROM 'generator:r?rows=2000&rate=1000' TIME ts;"
        "CREATE STREAM s FROM 'generator:s?rows=2000&rate=1000' TIME ts;"
        "SELECT r.x FROM r [RANGE 1 HOUR] JOIN s [RANGE 1 HOUR] ON r.x <> s.a"
    )
    plan = plan_for(bind(script, streams_of(script)), HERE)
    prepare(plan, HERE, {None: MemorySink()}, RunOptions()).close()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "join: no index fits the condition, so every pair in the windows is compared; expect about "
        "7,2"
    )
    caplog.clear()
    forced = plan_for(
        bind(script, streams_of(script)), HERE, PlanOptions(JoinOptions(method="scan"))
    )
    prepare(forced, HERE, {None: MemorySink()}, RunOptions()).close()
    assert not caplog.records


def test_files_are_not_exchanged_in_a_checkpoint_elsewhere() -> None:
    place = Place("local[2]", exchange="shared")
    place.check_checkpoint("/state", local=True)
    with pytest.raises(OptionError, match="shared needs a checkpoint on this host; got s3://b/c"):
        place.check_checkpoint("s3://b/c", local=False)


@pytest.mark.parametrize(
    ("words", "master"),
    [
        ("--master spark://there:7077 --name mine pyspark-shell", "spark://there:7077"),
        ("pyspark-shell", "local[*]"),
    ],
)
def test_a_master_that_was_submitted_is_the_default(
    words: str, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever prepares a notebook does it; tests/cluster has spark-submit itself."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", words)
    monkeypatch.setattr("tidegate.execute.spark.session.submission.active_session", lambda: None)
    assert Place.at(None).master == master
    assert Place.at("local[3]").master == "local[3]"


def test_settings_of_a_prepared_notebook_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.execute.spark.session.submission import prepared_conf

    words = "--conf spark.ui.enabled=true --packages a:b:1 --conf spark.x='y z' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", words)
    assert prepared_conf() == {"spark.ui.enabled": "true", "spark.x": "y z"}
