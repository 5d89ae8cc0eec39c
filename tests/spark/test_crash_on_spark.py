"""kill -9 on Spark: of the driver at any step, of Python workers, their daemon and the JVM."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.crash.folder import begins, contents, difference, facts, published
from tests.crash.process import DRIVER, ENVIRONMENT, KILLED, QUICK_JVM, Nursery, gone, wait_for
from tests.crash.scene import IN_ORDER, write_in_order, write_inputs
from tests.crash.site import Golden, request_for, undisturbed
from tidegate.cli.main import invoke
from tidegate.execute.java import ensure_java
from tidegate.testing import PHASES, STEPS, kill

pytestmark = pytest.mark.timeout(1200)  # many JVMs, on machines that have other things to do

MARK = "TIDEGATE_CRASH_TEST"
WAITS = "no task of Spark has come to do the work for"
"""Begins what is said while other work on the machine lets Spark wait."""


@dataclass
class Cluster:
    """Drivers with a Spark of their own, and all processes that come from them."""

    folder: Path
    inputs: Path
    goldens: dict[str, Golden]
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def request(self, scene: str) -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp(prefix=f"{scene}-", dir=self.folder))
        return request_for(scene, folder / "run", self.inputs) | {"master": "local[2]"}

    def golden(self, request: dict[str, Any]) -> Golden:
        """The undisturbed run: also of rows that go through Spark SQL."""
        return self.goldens[request["scene"].replace("through-sql", "aggregate")]

    def run(self, request: dict[str, Any], driver: Path = DRIVER, **more: Any) -> tuple[int, str]:
        """Run a driver to its end; its exit code, and what it wrote to standard error."""
        done = subprocess.run(
            [sys.executable, str(driver), json.dumps(request | more)],
            check=False,
            env=ENVIRONMENT | QUICK_JVM | {MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
        return done.returncode, done.stderr

    def killed(self, request: dict[str, Any], **more: Any) -> None:
        """Run a driver that is killed; what can be seen then is a part of the whole."""
        code, told = self.run(request, **more)
        assert code == KILLED, told
        golden = self.golden(request)
        assert begins(published(Path(request["out"])), golden.files)

    def failed(self, request: dict[str, Any], *batches: int, **more: Any) -> int:
        """Run a driver that gives up: one line that says at which batch, and what to do."""
        code, told = self.run(request, **more)
        assert code == 1, told
        (said,) = (x for x in told.splitlines() if not x.startswith(WAITS))  # and no stack
        assert "Nothing of the batch was committed; run again to continue." in told
        (batch,) = (b for b in batches if said.startswith(f"batch {b}: "))
        return batch

    def finish(self, request: dict[str, Any], **more: Any) -> None:
        """Run to the end, and compare everything with a run without Spark that was never killed."""
        code, told = self.run(request, **more)
        assert code == 0, told
        golden = self.golden(request)
        assert difference(contents(Path(request["out"])), golden.files) == []
        after = facts(Path(request["checkpoint"]))
        assert after["unreferenced"] == []
        assert after["verified"]["problems"] == []
        assert after["state"]["counters"] == golden.facts["state"]["counters"]
        assert {p.name for p in Path(request["checkpoint"]).iterdir()} <= {
            *("meta.json", "lock", "manifest", "segment", "gate", "staged", "epoch", "table"),
            *("archive", "journal"),
        }

    def died(self, request: dict[str, Any]) -> dict[str, int]:
        """How many of each kind traps have killed."""
        tally = Path(request["checkpoint"] + "-traps").rglob("*-?")
        victims = [p.name.partition("-")[0] for p in tally if p.name[0].isalpha()]
        return {v: victims.count(v) for v in set(victims)}

    def processes(self) -> list[int]:
        """Whoever was started by these drivers and is still there: the mark is inherited."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                marked = f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes()
            except (OSError, ValueError):
                continue
            if folder.name.isdigit() and marked and not gone(int(folder.name)):
                found.append(int(folder.name))
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    ensure_java()
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="tidegate-crash-", dir=place))
    inputs = write_inputs(folder / "inputs")
    nursery = Nursery()
    goldens = {
        name: undisturbed(nursery, request_for(name, folder / f"golden-{name}", inputs))
        for name in ("aggregate", "whole")
    }
    nursery.close()
    made = Cluster(folder, inputs, goldens)
    yield made
    for pid in made.processes():
        kill(pid)
    shutil.rmtree(folder)


def step(name: str, batch: int) -> dict[str, Any]:
    """The driver dies at a step of a batch."""
    return {"fault": {"kind": "step", "step": name, "batch": batch}}


def trap(victim: str, batch: int, phase: str, times: int = 1) -> dict[str, Any]:
    """A process dies when a task of a batch reads its split, or when an instance has its turn."""
    return {"victim": victim, "batch": batch, "phase": phase, "times": times}


def test_processes_of_spark_die_one_after_the_other(cluster: Cluster) -> None:
    """Tasks are tried again when a worker dies; where that is not enough a restart goes on.

    The last run goes on without Spark: a checkpoint does not know where it was made.
    """
    request = cluster.request("aggregate")
    workers = [trap("worker", 1, "read", times=2), *(trap("worker", b, "state") for b in (2, 3, 4))]
    daemon, driver = trap("daemon", 5, "state"), trap("driver", 6, "state")
    cluster.killed(request, traps=[*workers, daemon, driver])
    assert facts(Path(request["checkpoint"]))["state"]["batch"] == 5
    # Workers outlive the JVM for a moment, and may finish the batch in which it dies.
    batch = cluster.failed(request, 8, 9, traps=[trap("jvm", 8, "read")])
    worker, daemon = trap("worker", batch, "state", times=2), trap("daemon", batch + 1, "read")
    shuffle = {"traps": [worker, daemon], "exchange": "shuffle"}
    cluster.killed(request, **step("before commit", batch + 2), **shuffle)
    cluster.finish(request, master="none")
    assert cluster.died(request) == {"worker": 7, "daemon": 2, "jvm": 1, "driver": 1}


@pytest.mark.long
def test_workers_die_more_often_than_spark_lets_a_task_fail(cluster: Cluster) -> None:
    """Then the driver gives up, in one line, and the next one goes on."""
    request = cluster.request("aggregate")
    # Up to four times beside the batch before, of which nobody is told, and four in its turn.
    cluster.failed(request, 2, traps=[trap("worker", 2, "read", times=8)], two_jobs=True)
    cluster.finish(request, master="none")
    # A busy Spark may begin the turn of the batch before all four have died.
    assert 4 <= cluster.died(request)["worker"] <= 8


def test_a_driver_killed_while_spark_sql_has_a_part(cluster: Cluster) -> None:
    """Side outputs then take another way, through files of the batch."""
    request = cluster.request("through-sql")
    cluster.killed(request, traps=[trap("driver", 2, "state")])
    cluster.finish(request)


def test_processes_die_inside_a_query_of_several_operators(cluster: Cluster) -> None:
    """While rows are between two of them: a worker, then the driver; also with jobs of batches."""
    request = cluster.request("whole")
    worker = trap("worker", 1, "state", times=2)
    cluster.killed(request, traps=[worker, trap("driver", 3, "read")], two_jobs=True)
    jobs = {"execution": "jobs", "traps": [trap("worker", 4, "read")]}
    cluster.killed(request, **step("after operate", 5), **jobs)
    cluster.finish(request, master="none")


WAYS = ({}, {}, {"two_jobs": True}, {"execution": "jobs"}, {"exchange": "shuffle"})
"""Tasks that stay more often than what else there is."""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_processes_killed_at_random(seed: int, cluster: Cluster) -> None:
    """Five drivers in each run, and with each of them workers before; a hundred and more in all."""
    chance = random.Random(f"spark {seed}")
    request = cluster.request(chance.choice(["aggregate", "through-sql", "whole"]))
    kills = 0
    for batch in sorted(chance.sample(range(3, cluster.golden(request).batches), 5)):
        begun = facts(Path(request["checkpoint"]))["state"]["batch"] + 1 if kills else 0
        workers = [
            trap("worker", b, chance.choice(PHASES), times=chance.choice((1, 2)))
            for b in range(begun, batch)
            if chance.random() < 0.5
        ]
        moment = chance.choice([*STEPS, *PHASES])
        if moment in PHASES:
            fault = {"traps": [*workers, trap("driver", batch, moment)]}
        else:
            fault = {"traps": workers, **step(moment, batch)}
        cluster.killed(request, **fault, **chance.choice(WAYS))
        kills += 1
    cluster.finish(request)
    assert kills + cluster.died(request).get("worker", 0) >= 10


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_driver_whose_input_is_a_streaming_frame(seed: int, cluster: Cluster) -> None:
    """Killed at its steps and at its changes to files: while micro-batches come and are consumed.

    How they come is a matter of time, and so is the cut; the sequence of rows is not.
    """
    folder = cluster.folder / f"frame-{seed}"
    inputs = write_in_order(folder / "inputs")
    sql = f"CREATE STREAM rides FROM '{inputs}' TIME at DISORDER 10 SECONDS; {IN_ORDER.query};"
    (folder / "query.sql").write_text(sql)
    expected = ["run", str(folder / "query.sql"), "--master", "none", "--format", "json"]
    assert invoke([*expected, "--out", str(folder / "expected")]) == 0
    request = {"inputs": str(inputs), "out": str(folder / "out"), "checkpoint": str(folder / "c")}
    driver, chance = DRIVER.with_name("frame_driver.py"), random.Random(f"frame {seed}")
    killed = 0
    for turn in range(4):
        fault: dict[str, Any] = {"kind": "change", "change": int(chance.expovariate(1 / 30)) + 5}
        if turn % 2:
            fault = step(chance.choice(STEPS), 2 * turn)["fault"]
        code, told = cluster.run(request, driver, fault=fault)
        assert code in (0, KILLED), told
        killed += code == KILLED
    assert killed >= 2
    code, told = cluster.run(request, driver)
    assert code == 0, told
    found, whole = (_lines(folder / name) for name in ("out", "expected"))
    assert len(whole) > 100
    assert found == whole
    assert facts(folder / "c")["unreferenced"] == []


def _lines(out: Path) -> list[str]:
    parts = sorted(out.glob("batch=*/*"))
    return [line for part in parts for line in part.read_text().splitlines()]


def test_nothing_outlives_a_driver(cluster: Cluster) -> None:
    """The JVMs of killed drivers see that they are alone, and end with their workers."""
    wait_for(lambda: not cluster.processes(), "all processes of killed drivers end")
