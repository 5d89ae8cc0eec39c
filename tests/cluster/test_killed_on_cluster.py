"""kill -9 on a cluster, of drivers, executors and workers, while a query switches at random."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.standalone import CONF, Standalone, environment
from tests.crash.folder import begins, contents, difference, facts, published
from tests.crash.process import DRIVER, KILLED, Nursery, wait_for
from tests.crash.scene import SCENES, write_inputs
from tests.crash.site import Golden, request_for, undisturbed
from tests.seed import seeds
from tidegate.testing import PHASES, STEPS

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

BATCHES = 30
SWITCHES = 15
WORKER = "three"


@pytest.fixture
def whole(cluster: Standalone) -> Iterator[Standalone]:
    """The cluster, which has all its workers again afterwards."""
    yield cluster
    if WORKER not in cluster.processes:
        cluster.start_workers({WORKER: False})


def start(request: dict[str, Any], **more: Any) -> subprocess.Popen[str]:
    """A driver of its own, on the cluster."""
    return subprocess.Popen(
        [sys.executable, str(DRIVER), json.dumps(request | more)],
        env=environment() | {"PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(driver: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        told = driver.communicate(timeout=600)[1]
    finally:
        driver.kill()
    return driver.returncode, told


def requested(cluster: Standalone, here: Path, name: str) -> tuple[Golden, dict[str, Any]]:
    """What a run without switches leaves, and the request for one on the cluster."""
    inputs = write_inputs(cluster.shared / f"inputs-{name}")
    rows = {"batch_rows": 1_800 // BATCHES}
    nursery = Nursery()
    try:
        still = request_for("several", here / "still", inputs) | rows | {"switches": {}}
        golden = undisturbed(nursery, still)
    finally:
        nursery.close()
    conf = CONF | {"spark.cores.max": "3", "spark.tidegate.executors": "follow"}
    request = request_for("several", cluster.shared / name, inputs) | rows
    return golden, request | {"master": cluster.url, "conf": conf}


def instances_at(batches: Sequence[int], chance: random.Random) -> dict[int, int]:
    """Another number of instances with each of these batches."""
    switches, instances = {}, SCENES["several"].instances
    for batch in batches:
        instances = chance.choice([n for n in (1, 2, 3) if n != instances])
        switches[batch] = instances
    return switches


def finished(request: dict[str, Any], golden: Golden, switches: dict[int, int]) -> None:
    """All is there, once, as without a switch; and every switch was made with its batch."""
    assert difference(contents(Path(request["out"])), golden.files) == []
    after = facts(Path(request["checkpoint"]))
    assert after["verified"]["problems"] == []
    applied = {(e["batch"], e["instances"]) for e in after["state"]["epochs"] if e["batch"]}
    assert applied == set(switches.items())


@pytest.mark.parametrize("execution", ["jobs", "resident"])
@pytest.mark.parametrize("seed", seeds(1))
def test_switches_with_executors_added_removed_and_killed(
    seed: int, execution: str, whole: Standalone, tmp_path: Path
) -> None:
    """The driver is killed in the batch of a switch, then an executor is, then a worker.

    Tuples are shuffled, or go from task to task.
    """
    chance = random.Random(f"switches on a cluster {seed}")
    golden, request = requested(whole, tmp_path, f"killed-{execution}-{seed}")
    request |= {"execution": execution, "two_jobs": True}
    at = sorted(chance.sample(range(1, golden.batches - 1), SWITCHES))
    switches = instances_at(at, chance)
    request["switches"] = switches
    first = {"kind": "step", "step": "before commit", "batch": at[4]}
    code, told = ended(start(request, fault=first))
    assert code == KILLED, told
    assert begins(published(Path(request["out"])), golden.files)
    trap = {"victim": "jvm", "batch": at[7], "phase": "state"}
    pause = {"kind": "pause", "step": "after gate", "batch": at[10], "file": str(tmp_path / "go")}
    driver = start(request, fault=pause, traps=[trap])
    try:
        reached = tmp_path / "go.reached"
        wait_for(lambda: reached.exists() or driver.poll() is not None, "the eleventh switch")
        assert driver.poll() is None, ended(driver)[1]
        whole.kill(WORKER)
        (tmp_path / "go").touch()
        code, told = ended(driver)
    finally:
        driver.kill()
    assert code == 0, told
    assert [p.name for p in Path(f"{request['checkpoint']}-traps").rglob("jvm-*")] == ["jvm-0"]
    finished(request, golden, switches)


KILLS: dict[str, dict[str, Any]] = {
    **{step: {"fault": {"kind": "step", "step": step}} for step in STEPS},
    **{phase: {"traps": [{"victim": "driver", "phase": phase}]} for phase in PHASES},
}
"""What ends a driver at each step of a batch: its own, and those of its tasks in executors."""


@pytest.mark.timeout(3600)
def test_the_driver_is_killed_at_each_step_of_a_switch(whole: Standalone, tmp_path: Path) -> None:
    """Afterwards the mapping is the old one or the new one; an executor dies at each step too."""
    golden, request = requested(whole, tmp_path, "each-step")
    at = [2 + 3 * i for i in range(len(KILLS))]
    assert at[-1] + 2 < golden.batches
    switches = instances_at(range(2, golden.batches - 1), random.Random("each step"))
    request["switches"] = switches
    for batch, (step, kill) in zip(at, KILLS.items(), strict=True):
        planted = json.loads(json.dumps(kill))
        (planted.get("fault") or planted["traps"][0])["batch"] = batch
        code, told = ended(start(request, **planted))
        assert code == KILLED, (step, told)
        assert begins(published(Path(request["out"])), golden.files), step
        state = facts(Path(request["checkpoint"]))["state"]
        assert state["batch"] == (batch if step in ("after commit", "after publish") else batch - 1)
        there = {of["instances"] for of in state["subqueries"].values()}
        wanted = switches.get(state["batch"], SCENES["several"].instances)
        assert there == {wanted}, step
    last = golden.batches - 2
    traps = [{"victim": "jvm", "batch": last - i, "phase": p} for i, p in enumerate(PHASES)]
    code, told = ended(start(request, traps=traps))
    assert code == 0, told
    died = [p.name for p in Path(f"{request['checkpoint']}-traps").rglob("jvm-*")]
    assert died == ["jvm-0"] * len(PHASES)
    finished(request, golden, switches)
