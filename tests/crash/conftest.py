"""Inputs and undisturbed runs, made once; folders where syncing to disk costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.command import HALF, Command, MakeScenery, Scenery
from tests.crash.process import Nursery
from tests.crash.scene import SCENES, write_inputs
from tests.crash.site import Golden, Site, request_for, undisturbed
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


@pytest.fixture(scope="session")
def golden(nursery: Nursery, inputs: Path, scratch: Path) -> Callable[[str, str | None], Golden]:
    """The undisturbed run of a scene in a format, done once."""
    known: dict[tuple[str, str], Golden] = {}

    def of(scene: str, format_: str | None = None) -> Golden:
        key = (scene, format_ or SCENES[scene].format)
        if key not in known:
            folder = scratch / f"golden-{'-'.join(key)}"
            known[key] = undisturbed(nursery, request_for(scene, folder, inputs, key[1]))
        return known[key]

    return of


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="session")
def killed_halfway(
    nursery: Nursery, inputs: Path, scratch: Path, golden: Callable[..., Golden]
) -> Callable[[str], Site]:
    """A scene whose run was killed before batch HALF, done once; not to be gone on with.

    What the kill left behind is removed, so that a refused run can be seen to change nothing.
    """
    known: dict[str, Site] = {}

    def of(name: str) -> Site:
        if name not in known:
            folder = scratch / f"halfway-{name}"
            folder.mkdir()
            known[name] = Site(nursery, request_for(name, folder / "run", inputs), golden(name))
            assert known[name].run(kind="step", step="before gate", batch=HALF)
            Store.open(str(known[name].checkpoint)).clean()
            shutil.rmtree(known[name].out / "_staging")
        return known[name]

    return of


@pytest.fixture
def halfway(command: Command, killed_halfway: Callable[[str], Site]) -> Iterator[MakeScenery]:
    """A scene that was killed halfway; to be continued by the command line."""
    made: list[Path] = []

    def of(name: str = "aggregate") -> Scenery:
        site = killed_halfway(name).copy()
        made.append(site.out.parent)
        return Scenery(command, name, site.out.parent, Path(site.request["inputs"]))

    yield of
    for folder in made:
        shutil.rmtree(folder)


@pytest.fixture
def make_site(
    nursery: Nursery, inputs: Path, scratch: Path, golden: Callable[[str, str | None], Golden]
) -> Iterator[Callable[..., Site]]:
    made: list[Path] = []

    def make(scene: str, format_: str | None = None) -> Site:
        folder = Path(tempfile.mkdtemp(prefix=f"{scene}-", dir=scratch))
        made.append(folder)
        request = request_for(scene, folder / "run", inputs, format_)
        return Site(nursery, request, golden(scene, format_))

    yield make
    for folder in made:
        shutil.rmtree(folder)
