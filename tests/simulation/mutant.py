"""The engine with one of its safeguards taken out, as a course must find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from tests.simulation.fault import Astray, Damage, Fault, Replaced, Rotated
from tidegate.sink.registry import SINKS
from tidegate.source.mark import status_of
from tidegate.source.text.source import TextSource
from tidegate.state.files import LocalFiles
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.durable import Due
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.fault import PowerLoss, Zombie

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """What is taken out, the kinds of faults that show it, and a seed whose course did so once.

    That course is tried first; where it shows nothing any more, others do, and it is time to write
    down one of theirs.
    """

    name: str
    patch: Patch
    kinds: Sequence[type[Fault]]
    seed: int


def nothing(*arguments: Any, **options: Any) -> None:
    """In place of something that is done."""


def without(*places: str) -> Patch:
    """Leave out what functions do, each `module:Class.name`; they return nothing."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for place in places:
            module, _, name = place.partition(":")
            *above, last = name.split(".")
            owner: Any = import_module(module)
            for part in above:
                owner = getattr(owner, part)
            monkeypatch.setattr(owner, last, nothing)

    return patch


def files_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimDisk, "sync", lambda disk, file: file.flush())
    monkeypatch.setattr(SimDisk, "sync_file", nothing)


def any_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests replace each other, and nobody asks who has the checkpoint."""

    def put(files: LocalFiles, name: str, data: bytes, due: Due | None = None) -> bool:
        if due is not None:
            due.sync()
        with files.create(name) as out:
            out.write(data)
        return True

    monkeypatch.setattr(LocalFiles, "put_new", put)
    without("tidegate.state.store:Store.check_owner")(monkeypatch)
    monkeypatch.setattr("tidegate.state.owner.Owner._fenced", lambda owner: _NotRaised())
    monkeypatch.setattr("tidegate.state.store.Store.publish", put_anyway)


def put_anyway(store: Store, manifest: Manifest, due: Due) -> None:
    store._run._put(manifest, due)


class _NotRaised(Exception):
    """Nobody is fenced."""


def believed_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A followed file is read on where it was left, whatever it is by now."""

    def look(source: TextSource) -> disk.Status:
        status = status_of(source.path)
        assert status is not None
        source._seen = status
        return status

    monkeypatch.setattr(TextSource, "_look", look)
    grow = import_module("tidegate.source.text.block").BlockIndex.grow
    monkeypatch.setattr(
        "tidegate.source.text.block.BlockIndex.grow",
        lambda index, size, final, wary=False: grow(index, size, final),
    )
    without("tidegate.source.text.source:TextSource.check")(monkeypatch)


def any_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS, "nowhere", SINKS["file"])


MUTANTS = (
    Mutant(
        "staged output is not looked at",
        without("tidegate.sink.folder.files:first_damage"),
        (Damage,),
        seed=9,
    ),
    Mutant("nobody is fenced", any_owner, (Zombie,), seed=20),
    Mutant("nobody locks", without("tidegate.state.lock:Lock.take"), (Zombie,), seed=67),
    Mutant(
        "input that was replaced is read on",
        without(
            "tidegate.source.text.source:TextSource.check",
            "tidegate.source.columnar:ColumnarSource.check",
        ),
        (Replaced,),
        seed=6,
    ),
    Mutant("a followed file is believed to grow", believed_to_grow, (Rotated,), seed=0),
    Mutant("any scheme is a folder", any_scheme, (Astray,), seed=0),
    Mutant("files are not synced", files_not_synced, (PowerLoss,), seed=2),
    Mutant(
        "folders are not synced",
        without("tidegate.testing.simulation.disk:SimDisk.sync_folder"),
        (PowerLoss,),
        seed=21,
    ),
)
