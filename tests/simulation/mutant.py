"""The engine with one of its safeguards taken out, as a course must find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from tests.simulation.fault import Damage, Fault
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.fault import Kill, PowerLoss

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """What is taken out, and the kinds of faults that show it."""

    name: str
    patch: Patch
    kinds: Sequence[type[Fault]]


def put(place: str, value: Any) -> Patch:
    """Put something in a place `module:Class.name`."""
    module, _, name = place.partition(":")
    *above, last = name.split(".")

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        owner: Any = import_module(module)
        for part in above:
            owner = getattr(owner, part)
        monkeypatch.setattr(owner, last, value)

    return patch


def nothing(*arguments: Any, **options: Any) -> None:
    """In place of something that is done."""


def files_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimDisk, "sync", lambda disk, file: file.flush())


def folders_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimDisk, "sync_folder", nothing)


MUTANTS = (
    Mutant("files are not synced", files_not_synced, (PowerLoss,)),
    Mutant("folders are not synced", folders_not_synced, (PowerLoss,)),
    Mutant(
        "staged output is not looked at",
        put("tidegate.sink.files:first_damage", nothing),
        (Damage, Kill),
    ),
)
