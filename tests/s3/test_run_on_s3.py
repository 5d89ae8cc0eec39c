"""Whole runs with a checkpoint on an S3 server: killed, started again, fenced, damaged."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.folder import contents, difference
from tests.crash.process import KILLED, Nursery, wait_for
from tests.crash.scene import write_inputs
from tests.crash.site import request_for, undisturbed
from tests.driver.scene import COUNTS, drain, loop_of, memory, plan_of, rows_of
from tests.s3.server import KEYS, Server
from tidegate.driver.loop import Loop
from tidegate.errors import CheckpointError, FencedError, StateError
from tidegate.sink.memory import MemorySink
from tidegate.state.inspect import inspect
from tidegate.state.lock import Lock
from tidegate.state.store import Store

ROWS = [(second, key, second) for second in range(60) for key in "abc"]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(KEYS)
    yield made
    made.close()


def test_killed_and_started_again_to_the_same_output(
    nursery: Nursery, location: str, tmp_path: Path
) -> None:
    inputs = write_inputs(tmp_path / "inputs")
    golden = undisturbed(nursery, request_for("aggregate", tmp_path / "golden", inputs))
    request = {**request_for("aggregate", tmp_path / "run", inputs), "checkpoint": location}
    kills = [("before commit", 2), ("after commit", 4), ("after publish", 6)]
    for step, batch in kills:
        fault = {"kind": "step", "step": step, "batch": batch}
        assert nursery.run({**request, "fault": fault}) == KILLED
    assert nursery.run(request) == 0
    assert difference(contents(Path(request["out"])), golden.files) == []
    facts = inspect(Store.open(location), verify=True)
    assert facts["state"]["finished"]
    assert facts["owner"]["number"] == len(kills)
    assert (facts["verified"]["problems"], facts["unreferenced"]) == ([], [])


def test_a_driver_that_was_stopped_while_another_took_over(
    nursery: Nursery, location: str, tmp_path: Path
) -> None:
    """A process that gets no time, and goes on when the other has finished."""
    inputs = write_inputs(tmp_path / "inputs")
    golden = undisturbed(nursery, request_for("aggregate", tmp_path / "golden", inputs))
    request = {**request_for("aggregate", tmp_path / "run", inputs), "checkpoint": location}
    pause = {"kind": "pause", "step": "before commit", "batch": 3, "file": str(tmp_path / "go")}
    other = Nursery(KEYS)
    zombie = nursery.start({**request, "fault": pause})
    try:
        wait_for((tmp_path / "go.reached").exists, "the driver has run its third batch")
        os.kill(zombie, signal.SIGSTOP)
        assert other.run({**request, "log": str(tmp_path / "log")}) == 0
        os.kill(zombie, signal.SIGCONT)
        (tmp_path / "go").touch()
        assert nursery.wait() == 1
    finally:
        other.close()
    assert difference(contents(Path(request["out"])), golden.files) == []
    assert inspect(Store.open(location), verify=True)["verified"]["problems"] == []
    said = Path(request["log"]).read_text()
    assert "another run that took it over: owner 1, host" in said


@pytest.mark.parametrize("rest", [1, 12])
def test_fenced_on_the_server(
    location: str, rest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the number of the manifest is free again."""
    monkeypatch.setattr(Lock, "take", lambda lock: None)  # as from two hosts
    sink, others = MemorySink(), list[Loop]()

    def pause(step: str, batch: int) -> None:
        if (step, batch) == ("before commit", 2):
            source = memory(*ROWS, end=True)
            others.append(loop_of(plan_of(COUNTS), [source], location, sink, batch_rows=13))
            for _ in range(rest):
                others[0].step()

    known = MemorySink()
    zombie = loop_of(
        plan_of(COUNTS), [memory(*ROWS)], location, known, observer=pause, batch_rows=20
    )
    with pytest.raises(FencedError, match="took it over: owner 1"):
        zombie.run()
    drain(others[0])
    others[0].close()
    plain = MemorySink()
    loop_of(plan_of(COUNTS), [memory(*ROWS, end=True)], tmp_path, plain).run()
    assert rows_of(known) + rows_of(sink) == rows_of(plain)
    assert inspect(Store.open(location), verify=True)["verified"]["problems"] == []


def test_two_queries_of_one_process(location: str) -> None:
    one = loop_of(plan_of(COUNTS), [memory(*ROWS)], location)
    with pytest.raises(CheckpointError, match=r"this very process .*query\.stop\(\)"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], location)
    one.close()
    loop_of(plan_of(COUNTS), [memory(*ROWS)], location).close()


def test_state_that_is_damaged_on_the_server_is_told(
    server: Server, location: str, path: str
) -> None:
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], location, batch_rows=20)
    drain(loop)
    loop.close()
    segment = max((server.folder / path / "segment").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    (problem,) = inspect(Store.open(location), verify=True)["verified"]["problems"]
    assert f"s3://bucket/{path}/segment/{segment.name}: must have checksum" in problem
    segment.unlink()
    with pytest.raises(StateError, match=f"{segment.name}: must be there"):
        loop_of(plan_of(COUNTS), [memory(*ROWS)], location)


def test_rows_are_those_of_a_local_checkpoint(location: str, tmp_path: Path) -> None:
    found = []
    for place in (location, tmp_path):
        sink = MemorySink()
        source = memory(*ROWS, end=True)
        loop_of(plan_of(COUNTS), [source], place, sink, batch_rows=20).run()
        found.append(rows_of(sink))
    assert found[0] == found[1]
    assert len(found[0]) == 18
