"""The engine with one of its safeguards taken out, as a course must find it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

from tests.simulation.fault import Astray, Damage, Fault, Replaced, Rotated
from tidegate import disk
from tidegate.sink.part import WRITERS, FilePartWriter, _stem
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.registry import SINKS
from tidegate.sink.staging import ATTEMPT, Staging
from tidegate.source.mark import status_of
from tidegate.source.text_file import TextSource
from tidegate.state.files import LocalFiles
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.fault import PowerLoss, Task, Zombie
from tidegate.whole_file import FileWriter, whole_file

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """What is taken out, and the kinds of faults that show it."""

    name: str
    patch: Patch
    kinds: Sequence[type[Fault]]


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


def any_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests replace each other, and nobody asks who has the checkpoint."""

    def put(files: LocalFiles, name: str, data: bytes) -> bool:
        with files.create(name) as out:
            out.write(data)
        return True

    monkeypatch.setattr(LocalFiles, "put_new", put)
    without("tidegate.state.store:Store.check_owner")(monkeypatch)
    monkeypatch.setattr("tidegate.state.store.Store._fenced", lambda store: _NotRaised())
    monkeypatch.setattr("tidegate.state.store.Store.publish", lambda s, m: s._put(m) and None)


class _NotRaised(Exception):
    """Nobody is fenced."""


def fixed_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a batch have the same names in each try, wherever it was begun."""

    def folder(staging: Staging, batch: str, attempt: str) -> Any:
        return staging.folder / f"{batch}.00000000-0"

    def begin(staging: Staging, batch: str, keep: int | None) -> str:
        staging.sweep(keep, ended=False)
        if disk.exists(staging.attempt(batch, "")):
            disk.remove_tree(staging.attempt(batch, ""))
        disk.make_folders(staging.attempt(batch, ""))
        return "00000000-0"

    def seal(
        staging: Staging, batch: str, attempt: str, receipts: Sequence[Receipt]
    ) -> list[Receipt]:
        return [replace(r, more={ATTEMPT: "00000000-0"}) for r in receipts]

    def write(writer: FilePartWriter, part: Part, rows: pa.Table) -> Receipt:
        name = f"{_stem(part)}.{writer.format}"
        path = os.path.join(os.path.dirname(writer.folder), writer.attempt, name)
        with whole_file(path, sync="folder", parents=True) as file:
            out = FileWriter(file)
            WRITERS[writer.format](rows, out)
        return Receipt(name, rows.num_rows, out.bytes, out.checksum, {})

    monkeypatch.setattr(Staging, "attempt", folder)
    monkeypatch.setattr(Staging, "begin", begin)
    monkeypatch.setattr(Staging, "seal", seal)
    monkeypatch.setattr(FilePartWriter, "write", write)
    without("tidegate.sink.files:first_damage")(monkeypatch)


def believed_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A followed file is read on where it was left, whatever it is by now."""

    def look(source: TextSource) -> disk.Status:
        status = status_of(source.path)
        assert status is not None
        source._seen = status
        return status

    monkeypatch.setattr(TextSource, "_look", look)
    grow = import_module("tidegate.source.block").BlockIndex.grow
    monkeypatch.setattr(
        "tidegate.source.block.BlockIndex.grow",
        lambda index, size, final, wary=False: grow(index, size, final),
    )
    without("tidegate.source.text_file:TextSource.check")(monkeypatch)


def any_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINKS, "s3", SINKS["file"])


MUTANTS = (
    Mutant(
        "staged output is not looked at", without("tidegate.sink.files:first_damage"), (Damage,)
    ),
    Mutant("nobody is fenced", any_owner, (Zombie,)),
    Mutant("nobody locks", without("tidegate.state.lock:Lock.take"), (Zombie,)),
    Mutant(
        "input that was replaced is read on",
        without(
            "tidegate.source.text_file:TextSource.check",
            "tidegate.source.parquet:ParquetSource.check",
        ),
        (Replaced,),
    ),
    Mutant("a followed file is believed to grow", believed_to_grow, (Rotated,)),
    Mutant("all tries of a part have one name", fixed_names, (Task, Zombie)),
    Mutant("any scheme is a folder", any_scheme, (Astray,)),
    Mutant("files are not synced", files_not_synced, (PowerLoss,)),
    Mutant(
        "folders are not synced",
        without("tidegate.testing.simulation.disk:SimDisk.sync_folder"),
        (PowerLoss,),
    ),
)
