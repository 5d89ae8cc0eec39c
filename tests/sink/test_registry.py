"""Sinks by their URIs: what each form means, and what is said of those that mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, UnavailableError
from tidegate.remote.scheme import REMOTE
from tidegate.sink.address import Address
from tidegate.sink.console import ConsoleSink
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.remote import RemoteSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.null_sink import NothingSink
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import IN_PROGRAM, SINKS, as_sink, of

PLACES = {
    "file": "out",
    "delta": "out",
    "delta+s3": "//bucket/out?region=here",
    "iceberg": "out/catalog.db?table=a.b",
    "postgresql": "//user@host/db?table=t",
    "postgres": "///?table=s.t&newest=true&service=here",
    "kafka": "//host:9092/topic",
}
HERE = [f"{scheme}:{PLACES.get(scheme, '')}" for scheme in SINKS if scheme not in REMOTE]
THERE = [
    "s3://bucket/out?region=here",
    "S3A://bucket/out?region=here&format=csv",
    "gs://bucket/out",
    "abfs://container@account/out",
]

FOLDERS = {
    "out": ("out", "parquet"),
    "./run:1": ("./run:1", "parquet"),
    "/data/a b#c": ("/data/a b#c", "parquet"),
    "50%25": ("50%25", "parquet"),
    "out?format=csv": ("out", "csv"),
    "file:///data/out": ("/data/out", "parquet"),
    "FILE:///data/out?format=json": ("/data/out", "json"),
    "file://localhost/data/out": ("/data/out", "parquet"),
    "file:out": ("out", "parquet"),
    "file:///a%20b/c%3Fd#e": ("/a b/c?d#e", "parquet"),
}


@pytest.mark.parametrize("uri", FOLDERS)
def test_folders(uri: str) -> None:
    path, format_ = FOLDERS[uri]
    sink = of(uri)
    assert isinstance(sink, FileSink)
    assert (sink.path, sink.sides, sink.format) == (Path(path), Path(path), format_)


def test_an_output_with_a_name_has_a_folder_of_its_name() -> None:
    sink = of("file:///data/out?format=csv", "busy")
    assert isinstance(sink, FileSink)
    places = (sink.path, sink.sides, sink.format)
    assert places == (Path("/data/out/busy"), Path("/data/out"), "csv")


def test_sinks_of_this_process() -> None:
    assert isinstance(of("console:"), ConsoleSink)
    assert isinstance(of("memory:"), MemorySink)
    assert of("memory:") is not of("memory:")


def test_making_a_sink_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in (*HERE, *THERE):
        of(uri)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sink",
    [
        *map(of, HERE),
        of(THERE[0]),
        tg.sink.call(print),
        NothingSink(),
    ],
    ids=lambda sink: type(sink).__name__,
)
def test_every_sink_has_the_whole_protocol(sink: Sink) -> None:
    assert isinstance(sink, Sink)
    sink.close()  # also of one that was never opened


def test_schemes_of_programs_are_known() -> None:
    assert set(IN_PROGRAM) < set(SINKS)


MISTAKES = {
    "": "sink: must say where results go; got ''. Give a folder, or console:.",
    "  ": "sink: must say where results go; got '  '. Give a folder, or console:.",
    "flie:///out": (
        "sink: must be a path or of a known scheme; got flie:. Did you mean file? There are: "
        "file, console, memory, kafka, s3, gs, abfs, hdfs, postgresql, delta, delta+s3, iceberg."
    ),
    "results:2024": (
        "sink: must be a path or of a known scheme; got results:. Did you mean delta+s3 or delta? "
        "There are: file, console, memory, kafka, s3, gs, abfs, hdfs, postgresql, delta, delta+s3, "
        "iceberg. A folder of this name is ./results:2024."
    ),
    "file:": (
        "sink: a file URI must name a folder; got file:. Write it as file:///path/of/a/folder."
    ),
    "file:///": (
        "sink: a file URI must name a folder; got file:///. Write it as file:///path/of/a/folder."
    ),
    "file://data/out": (
        "sink: a file URI must name a folder on this machine; got file://data/out. Write it as "
        "file:///data/out, or as a plain path."
    ),
    "console:x": (
        "sink: console: stands alone; got console:x. Write console: and nothing after it."
    ),
    "console:?format=csv": (
        "sink: parameters must be those of console:; got format=csv. It has none: leave it out."
    ),
    "memory://here": (
        "sink: memory: stands alone; got memory://here. Write memory: and nothing after it."
    ),
    "out?form=csv": (
        "sink: parameters must be those of file:; got form=csv. Did you mean format? There are: "
        "format, nonfinite."
    ),
    "out?format=xml": (
        "sink: must be a known format; got format=xml. There are: parquet, csv, json."
    ),
    "out?format=": "sink: must be a known format; got format=. There are: parquet, csv, json.",
    "out?csv": (
        "sink: after the ? parameters must look like format=csv; got out?csv. In the name of a "
        "folder write ? as %3F and the whole as file:///path."
    ),
    "out?format=csv&format=json": (
        "sink: a parameter can be given once; got format twice in out?format=csv&format=json. "
        "Keep one format."
    ),
    "delta:": "sink: must name a folder; got none. Write delta:PATH.",
    "delta://host/t": (
        "sink: delta: is for a folder of this machine; got //host/t. Write delta:PATH, or "
        "delta+s3://bucket/path."
    ),
    "delta:t?format=csv": (
        "sink: parameters must be those of delta:; got parameter format. There are: append."
    ),
    "delta:t?append=yes": (
        "sink: append must be true or false; got yes. Write append=true, or leave it out."
    ),
    "delta+s3:bucket/t": (
        "sink: must name a bucket and a folder; got bucket/t. Write delta+s3://bucket/path."
    ),
    "delta+gs://bucket/t": (
        "sink: must be a path or of a known scheme; got delta+gs:. Did you mean delta+s3 or "
        "delta? There are: file, console, memory, kafka, s3, gs, abfs, hdfs, postgresql, delta, "
        "delta+s3, iceberg."
    ),
    "iceberg:lake.db": (
        "sink: must name a table with its namespace; got no table. Write "
        "iceberg:lake.db?table=namespace.table."
    ),
    "iceberg:?table=a.b": (
        "sink: must name a catalog of pyiceberg's configuration, or an SQLite file; got none. "
        "Write iceberg:NAME?table=..., or iceberg:folder/catalog.db?table=...."
    ),
    "iceberg:lake.db?table=a.b&warehous=x": (
        "sink: parameters must be those of iceberg:; got parameter warehous. Did you mean "
        "warehouse? There are: append, table, name, warehouse, region, scheme, "
        "endpoint_override, force_virtual_addressing."
    ),
    "iceberg:prod?table=a.b&warehouse=x": (
        "sink: warehouse is for a catalog in an SQLite file; got warehouse=x. Leave it out: "
        "pyiceberg's configuration says it."
    ),
    r"C:\out": (
        r"sink: must be a folder of this system, or a URI; got the Windows path C:\out. Write it "
        "as this system does, for example out or /data/out."
    ),
    r"\\host\share": (
        r"sink: must be a folder of this system, or a URI; got the Windows path \\host\share. "
        "Write it as this system does, for example out or /data/out."
    ),
}


@pytest.mark.parametrize("uri", MISTAKES)
def test_uris_that_name_nothing(uri: str) -> None:
    with pytest.raises(OptionError) as caught:
        of(uri)
    assert str(caught.value) == MISTAKES[uri]


def test_an_option_beside_the_uri() -> None:
    plain = Address.parse("out", "--out")
    assert plain.with_parameter("--format", "format", "csv").parameters == {"format": "csv"}
    there = Address.parse("out?format=csv", "--out")
    assert there.with_parameter("--format", "format", "csv") == there
    with pytest.raises(OptionError, match=r"--format: must be the format of --out, or left out"):
        there.with_parameter("--format", "format", "json")


def test_a_program_gives_a_sink_or_its_uri() -> None:
    sink = tg.sink.memory()
    assert as_sink(sink) is sink
    assert isinstance(as_sink("out"), FileSink)
    with pytest.raises(OptionError, match=r"sink: must be a URI, or have what .* has; got 7\."):
        as_sink(7)  # type: ignore[arg-type]


ELSEWHERE = [
    "s4://bucket/out",
    "http://host/out",
    "https://host/out",
    "ftp://host/out",
    "made-up+1://out",
]


@pytest.mark.parametrize("make", [tg.sink.files, FileSink, tg.sink.of, as_sink])
@pytest.mark.parametrize("uri", ELSEWHERE)
def test_a_place_elsewhere_is_not_taken_for_a_folder_here(uri: str, make: Any) -> None:
    """It was, by programs: a folder `s3:` appeared, and everything seemed to be well."""
    with pytest.raises(OptionError, match=r"^sink: .*There are: file") as told:
        make(uri)
    assert uri.partition(":")[0].lower() in str(told.value)


@pytest.mark.parametrize("uri", ["kafka://host:9092/topic", "postgresql://user@host/db?table=t"])
def test_a_server_is_not_taken_for_a_folder(uri: str) -> None:
    for make in (tg.sink.files, FileSink):
        with pytest.raises(OptionError, match=r"must be a folder of this machine; .*tg.sink.of"):
            make(uri)


@pytest.mark.parametrize("make", [tg.sink.files, tg.sink.of, as_sink])
@pytest.mark.parametrize("uri", THERE)
def test_folders_elsewhere(uri: str, make: Any) -> None:
    if make is tg.sink.files and "format" in uri:
        with pytest.raises(OptionError, match="must be the format of sink, or left out"):
            make(uri)
        return
    sink = make(uri)
    assert isinstance(sink, RemoteSink)
    assert sink.format == ("csv" if "format" in uri else "parquet")
    assert "format" not in sink.uri
    with pytest.raises(OptionError, match=r"^sink: must be a folder of this machine; got .*Use tg"):
        FileSink(uri)


@pytest.mark.parametrize("make", [tg.sink.files, tg.sink.of])
@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (
            "hdfs://namenode/out",
            "the file system of hdfs:// must be usable here; got .* Install",
        ),
        ("hdfs:/out", "a URI of hdfs must have its slashes"),
        (Path("s3://bucket/out"), "a URI of s3 must have its slashes; got s3:/bucket/out"),
        (
            "s3://bucket/out?regoin=x",
            "must have parameters that s3:// knows; got regoin for s3://b",
        ),
    ],
)
def test_folders_elsewhere_that_cannot_be_used(uri: str | Path, message: str, make: Any) -> None:
    with pytest.raises(OptionError, match=f"^sink: {message}"):
        make(str(uri))


def test_a_manifest_has_where_the_results_of_an_output_are() -> None:
    sink = of("s3://bucket/out?region=here&format=csv", "busy")
    assert sink.uri == "s3://bucket/out?region=here&output=busy"
    again = RemoteSink.of_manifest(sink.uri)
    assert again.uri == sink.uri


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("run:1", "run:1"),
        ("./s3:/x", "./s3:/x"),
        ("a?b", "a?b"),
        ("file:///data/out", "/data/out"),
        ("file:///a%20b", "/a b"),
        (Path("/data/out"), "/data/out"),
    ],
)
def test_folders_of_programs(given: str | Path, path: str) -> None:
    assert tg.sink.files(given).path == Path(path)


@pytest.mark.parametrize("uri", ["s3:bucket/out", "hdfs://namenode/out", "http://host/out"])
def test_no_query_is_started_for_a_place_elsewhere(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("ts,k\n2024-01-01T00:00:00Z,a\n")
    query = tg.Session(master="none").stream("a.csv", time="ts").select("k")
    with pytest.raises((OptionError, UnavailableError)):
        query.start(sink=uri)
    assert invoke(["run", "q.sql", "--out", uri]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
