"""Inputs and undisturbed runs, made once; folders where syncing to disk costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.command import Command, Scenery
from tests.crash.folder import contents, difference, facts, published, results
from tests.crash.process import KILLED, Nursery
from tests.crash.scene import SCENES, write_inputs
from tidegate.state.store import Store


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: kills do not ask whether a disk has synced."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="tidegate-crash-", dir=place))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def inputs(scratch: Path) -> Path:
    return write_inputs(scratch / "inputs")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@dataclass(frozen=True)
class Golden:
    """What an undisturbed run leaves: the files of its results, and what its checkpoint says."""

    files: dict[str, bytes]
    facts: dict[str, Any]
    batches: int


class Site:
    """One scene in folders of its own, run again and again until it is done."""

    def __init__(self, nursery: Nursery, request: dict[str, Any], golden: Golden | None) -> None:
        self.nursery = nursery
        self.request = request
        self.golden = golden
        self.out = Path(request["out"])
        self.checkpoint = Path(request["checkpoint"])
        self.log = Path(request["log"])

    def run(self, **fault: Any) -> bool:
        """Run with a fault, or without; whether it was killed. Every other failure fails."""
        status = self.nursery.run({**self.request, "fault": fault or None})
        assert status in (0, KILLED), f"exit {status} with {fault}: {self.log.read_text()}"
        return status == KILLED

    def check_now(self) -> None:
        """After a kill: what can be seen is a part of the whole, and no batch is half there."""
        assert self.golden is not None
        seen, whole = results(published(self.out)), results(self.golden.files)
        assert {n: whole.get(n) for n in seen} == seen
        assert sorted(seen) == sorted(whole)[: len(seen)]

    def copy(self) -> Site:
        """The same folders once more, beside the first ones."""
        number = len(list(self.out.parent.parent.iterdir()))
        folder = self.out.parent.with_name(f"copy-{number}")
        shutil.copytree(self.out.parent, folder)
        places = {k: str(folder / Path(self.request[k]).name) for k in ("out", "checkpoint", "log")}
        return Site(self.nursery, {**self.request, **places}, self.golden)

    def finish(self) -> None:
        """Run to the end undisturbed, and compare everything with a run that was never killed."""
        assert self.golden is not None
        assert not self.run()
        assert difference(contents(self.out), self.golden.files) == []
        after = facts(self.checkpoint)
        assert after["unreferenced"] == []
        assert after["verified"]["problems"] == []
        assert after["state"] == self.golden.facts["state"]


@pytest.fixture(scope="session")
def golden(nursery: Nursery, inputs: Path, scratch: Path) -> Callable[[str, str | None], Golden]:
    """The undisturbed run of a scene in a format, done once."""
    known: dict[tuple[str, str], Golden] = {}

    def of(scene: str, format_: str | None = None) -> Golden:
        key = (scene, format_ or SCENES[scene].format)
        if key not in known:
            site = Site(nursery, _request(scene, scratch / f"golden-{'-'.join(key)}", inputs), None)
            site.request["format"] = key[1]
            assert not site.run()
            found = facts(site.checkpoint)
            known[key] = Golden(contents(site.out), found, found["state"]["batch"] + 1)
        return known[key]

    return of


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def halfway(command: Command, make_site: Callable[..., Site]) -> Callable[..., Scenery]:
    """A scene whose run was killed before batch 7; to be continued by the command line.

    What the kill left behind is removed, so that a refused run can be seen to change nothing.
    """

    def of(name: str = "aggregate") -> Scenery:
        site = make_site(name)
        assert site.run(kind="step", step="before gate", batch=7)
        Store.open(str(site.checkpoint)).clean()
        return Scenery(command, name, site.out.parent, Path(site.request["inputs"]))

    return of


@pytest.fixture
def make_site(
    nursery: Nursery, inputs: Path, scratch: Path, golden: Callable[[str, str | None], Golden]
) -> Iterator[Callable[..., Site]]:
    made: list[Path] = []

    def make(scene: str, format_: str | None = None) -> Site:
        folder = Path(tempfile.mkdtemp(prefix=f"{scene}-", dir=scratch))
        made.append(folder)
        request = _request(scene, folder / "run", inputs)
        request["format"] = format_ or SCENES[scene].format
        return Site(nursery, request, golden(scene, format_))

    yield make
    for folder in made:
        shutil.rmtree(folder)


def _request(scene: str, folder: Path, inputs: Path) -> dict[str, Any]:
    folder.mkdir()
    return {
        "scene": scene,
        "inputs": str(inputs),
        "out": str(folder / "out"),
        "checkpoint": str(folder / "checkpoint"),
        "log": str(folder / "log"),
    }
