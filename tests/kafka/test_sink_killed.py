"""Whole queries that are killed again and again, also inside of a commit: each row comes once."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.kafka import Broker

from tests.conftest import LONG
from tests.crash.process import KILLED, Nursery
from tests.crash.scene import SCENES, write_inputs
from tests.kafka.proxy import END, OFFSET_COMMIT, PRODUCE, Call, Proxy, between
from tests.kafka.reading import committed, in_order
from tests.seed import SEED

SCENE = SCENES["whole"]
"""Two aggregates over a join, which switches between numbers of instances, with late tuples."""

INSIDE = [(PRODUCE, False), (OFFSET_COMMIT, True), (END, False), (END, True)]
"""A request to the broker at which a run is killed: before it arrives, or when it is done."""

KILLS = 40 if LONG else 4


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery({"PYTHONFAULTHANDLER": "1"})
    yield made
    made.close()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inputs(tmp_path_factory.mktemp("rides") / "inputs")


def request(folder: Path, inputs: Path, out: str, format: str, **more: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    places = {"checkpoint": str(folder / "checkpoint"), "log": str(folder / "log")}
    asked = {"scene": SCENE.name, "inputs": str(inputs), "out": out, "format": format}
    return {**asked, **places, **more}


def lines(folder: Path, parts: str) -> list[bytes]:
    files = sorted(folder.glob(parts))
    return [line for file in files for line in file.read_bytes().splitlines()]


def killed_inside(
    nursery: Nursery, proxy: Proxy, asked: dict[str, Any], kind: int, done: bool, after: int
) -> bool:
    """Run it, and kill it at a request of a kind; whether it came so far."""
    pid: list[int] = []
    proxy.plan(kind, Call(lambda: os.kill(pid[0], signal.SIGKILL), done), after)
    pid.append(nursery.start(asked))
    status = nursery.wait()
    proxy.fates.clear()
    assert status in (0, KILLED), Path(asked["log"]).read_text()
    return status == KILLED


def test_a_run_that_is_killed_again_and_again_leaves_the_rows_of_one_that_is_not(
    broker: Broker, topic: str, tmp_path: Path, nursery: Nursery, inputs: Path
) -> None:
    undisturbed = tmp_path / "undisturbed"
    plain = request(undisturbed, inputs, str(undisturbed / "out"), "json")
    assert nursery.run(plain) == 0, (undisturbed / "log").read_text()
    chance = random.Random(SEED)
    sides = f"late={topic}-late&rejected={topic}-rejected"
    with between(broker.port) as proxy:
        out = f"kafka://{proxy.address}/{topic}"
        asked = request(tmp_path / "killed", inputs, out, f"json&partitions=6&key=route&{sides}")
        happened = 0
        for number in range(KILLS):
            kind, done = INSIDE[number % len(INSIDE)]
            claims = 1 if kind == PRODUCE else 2  # the marker is written when a run begins
            after = chance.randrange(claims - 1, claims + 1)
            happened += killed_inside(nursery, proxy, asked, kind, done, after)
            step = {"kind": "step", "step": "after commit", "batch": 4 + number}
            if number % 3 == 2:
                happened += nursery.run({**asked, "fault": step}) == KILLED
        assert happened >= 5, "it must have been killed"
        assert nursery.run(asked) == 0, (tmp_path / "killed" / "log").read_text()
        commits = proxy.count[END]
        assert nursery.run(asked) == 0
        assert proxy.count[END] - commits <= 1, "nothing must be left to do"
    found = in_order(committed(broker, topic))
    assert [record.value for record in found] == lines(undisturbed / "out", "batch=*/*")
    for side in ("late", "rejected"):
        rest = sorted(r.value or b"" for r in in_order(committed(broker, f"{topic}-{side}")))
        assert rest == sorted(lines(undisturbed / "out", f"_{side}/*/*"))
