"""kill -9 on a cluster, of drivers, executors and workers, while a query switches at random."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.standalone import CONF, Standalone, environment
from tests.crash.folder import begins, contents, difference, facts, published
from tests.crash.process import DRIVER, KILLED, Nursery, wait_for
from tests.crash.scene import SCENES, write_inputs
from tests.crash.site import request_for, undisturbed
from tests.seed import seeds

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
    told = driver.communicate(timeout=600)[1]
    return driver.returncode, told


@pytest.mark.parametrize("seed", seeds(1))
def test_switches_with_executors_added_removed_and_killed(
    seed: int, whole: Standalone, tmp_path: Path
) -> None:
    """The driver is killed in the batch of a switch, then an executor is, then a worker."""
    chance = random.Random(f"switches on a cluster {seed}")
    inputs = write_inputs(whole.shared / f"inputs-{seed}")
    rows = {"batch_rows": 1_800 // BATCHES}
    nursery = Nursery()
    try:
        still = request_for("several", tmp_path / "still", inputs) | rows | {"switches": {}}
        golden = undisturbed(nursery, still)
    finally:
        nursery.close()
    at = sorted(chance.sample(range(1, golden.batches - 1), SWITCHES))
    switches, instances = {}, SCENES["several"].instances
    for batch in at:
        instances = chance.choice([n for n in (1, 2, 3) if n != instances])
        switches[batch] = instances
    folder = whole.shared / f"killed-{seed}"
    conf = CONF | {"spark.cores.max": "3", "spark.tidegate.executors": "follow"}
    request = request_for("several", folder, inputs) | rows
    request |= {"switches": switches, "master": whole.url, "conf": conf}
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
    assert difference(contents(Path(request["out"])), golden.files) == []
    after = facts(Path(request["checkpoint"]))
    assert after["verified"]["problems"] == []
    applied = {(e["batch"], e["instances"]) for e in after["state"]["epochs"] if e["batch"]}
    assert applied == set(switches.items())


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM"])
def test_make_cluster_tells_how_to_use_it_and_leaves_no_process(stop: str) -> None:
    import signal

    command = [sys.executable, "tools/cluster.py", "--workers", "1", "--port", "0"]
    tool = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None
    said = ""
    for line in tool.stdout:
        said += line
        if "Ctrl-C" in line:
            break
    assert "--master spark://127.0.0.1:" in said
    children = Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()
    assert len(children) == 2
    tool.send_signal(signal.Signals[stop])
    assert tool.wait(60) == 0
    assert [pid for pid in children if os.path.exists(f"/proc/{pid}")] == []
