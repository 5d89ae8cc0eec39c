"""Runs with input, results and checkpoint on an S3 server: the files of a run on a local disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.crash.folder import contents, difference
from tests.crash.process import KILLED, Nursery
from tests.crash.scene import SCENES, write_inputs
from tests.crash.site import request_for, undisturbed
from tests.driver.scene import drain, run_dry
from tests.s3.server import KEYS, Server
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import GateError
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.registry import of
from tidegate.source import remote_listing
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.inspect import inspect
from tidegate.state.store import Store

KILLS = (
    {"kind": "request", "number": 2},
    {"kind": "step", "step": "before commit", "batch": 0},
    *({"kind": "request", "number": number} for number in (9, 1, 14)),
    {"kind": "step", "step": "after commit", "batch": 4},
    *({"kind": "request", "number": number} for number in (8, 23)),
    {"kind": "step", "step": "after publish", "batch": 8},
    {"kind": "request", "number": 11},
)
"""Where runs die, one after the other: at steps, and before the n-th of their changes to objects,
which is a part put aside, a file of the checkpoint, a copy into place or a deletion."""


@pytest.fixture(scope="module")
def nursery(server: Server) -> Iterator[Nursery]:
    made = Nursery({**KEYS, "AWS_ENDPOINT_URL": f"http://{server.address}"})
    yield made
    made.close()


@pytest.fixture(autouse=True)
def endpoint(server: Server, keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{server.address}")


@pytest.fixture
def place(server: Server, path: str) -> Path:
    """Where the objects of the test are as files; the inputs are there."""
    write_inputs(server.folder / path / "in")
    return server.folder / path


def request_on(path: str, scene: str, log: Path) -> dict[str, Any]:
    """All of it on the server."""
    places = {"inputs": "in", "out": "out", "checkpoint": "checkpoint"}
    uris = {name: f"s3://bucket/{path}/{folder}" for name, folder in places.items()}
    return {"scene": scene, "log": str(log), "format": SCENES[scene].format, **uris}


def seen(folder: Path, inputs: str) -> dict[str, bytes]:
    """What readers see, with the same name for the folder of the inputs.

    Without the ledgers: they have checksums of rows that name it.
    """
    found = {name: data for name, data in contents(folder).items() if "_ledger" not in name}
    assert not [name for name in found if "_staging" in name]
    return {name: data.replace(inputs.encode(), b"INPUTS") for name, data in found.items()}


def test_killed_and_started_again_to_the_files_of_a_local_run(
    nursery: Nursery, place: Path, path: str, tmp_path: Path
) -> None:
    local = undisturbed(nursery, request_for("stateless", tmp_path / "local", place / "in"))
    request = request_on(path, "stateless", tmp_path / "log")
    for fault in KILLS:
        assert nursery.run({**request, "fault": fault}) == KILLED, fault
    assert nursery.run(request) == 0, Path(request["log"]).read_text()
    there = seen(place / "out", request["inputs"])
    files = {k: v for k, v in local.files.items() if "_ledger" not in k}
    here = {k: v.replace(str(place / "in").encode(), b"INPUTS") for k, v in files.items()}
    assert difference(there, here) == []
    assert {name.split("/")[0] for name in there} > {"_late", "_rejected"}
    facts = inspect(Store.open(request["checkpoint"]), verify=True)
    assert (facts["verified"]["problems"], facts["unreferenced"]) == ([], [])
    assert facts["state"]["finished"]


def test_outputs_with_names(nursery: Nursery, place: Path, path: str, tmp_path: Path) -> None:
    request = request_on(path, "several", tmp_path / "log")
    fault = {"kind": "step", "step": "after commit", "batch": 1}
    assert nursery.run({**request, "fault": fault}) == KILLED
    assert nursery.run({**request, "fault": {"kind": "request", "number": 20}}) == KILLED
    there = [name.rpartition("/batch=")[0] for name in contents(place / "out")]
    assert {name for name in there if "_staging" not in name and not name.endswith("_ledger")} == {
        *("busy", "pairs", "rises", "_late", "_rejected")
    }


def test_a_followed_folder(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """New objects are taken, also those that came while it was stopped; one that grows is told."""
    monkeypatch.setattr(remote_listing, "_PAUSE_S", 0.0)
    monkeypatch.setattr(remote_listing, "_SHARE", 0.0)
    folder, out = server.folder / path / "in", f"s3://bucket/{path}/out"
    folder.mkdir(parents=True)
    script = read_script(
        f"CREATE STREAM r FROM 's3://bucket/{path}/in' TIME t;"
        "SELECT i, COUNT(*) AS n FROM r [RANGE 1 SECOND] GROUP BY i;"
    )

    def put(number: int) -> None:
        (folder / f"{number}.csv").write_text(f"t,i\n2024-01-01T00:00:0{number},{number}\n")

    def loop() -> Loop:
        plan = plan_for(list(bind(script, streams_of(script))), Place("none"))
        options = RunOptions(follow=True)
        checkpoint = f"s3://bucket/{path}/checkpoint"
        return prepare(plan, Place("none"), {None: of(out)}, options, checkpoint)

    put(1)
    first = loop()
    for number in (2, 3):
        drain(first)
        put(number)
    run_dry(first)
    put(4)
    second = loop()
    drain(second)
    files = sorted((server.folder / path / "out").glob("batch=*/part-*"))
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert [(row["i"], row["n"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    with (folder / "4.csv").open("a") as file:
        file.write("2024-01-01T00:00:05,5\n")
    with pytest.raises(GateError, match=r"4\.csv: .* got 48 bytes where 26 had been\. Put it back"):
        drain(second)
    second.close()
