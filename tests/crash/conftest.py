"""Inputs and undisturbed runs, made once; folders where syncing to disk costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.command import Command, Scenery
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
        request = request_for(scene, folder / "run", inputs, format_)
        return Site(nursery, request, golden(scene, format_))

    yield make
    for folder in made:
        shutil.rmtree(folder)
