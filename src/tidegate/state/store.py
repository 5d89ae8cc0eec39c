"""The checkpoint location on any file system, between the driver or a task and the files in it.

Layout: ``meta.json | manifest/NNNNNNNN.json | segment/*.arrow | gate/*.arrow | staged/* |
epoch/NNNNNNNN.json``. Only a published manifest makes other files count, so a crash at any point
leaves the state before it.
"""

from __future__ import annotations

import itertools
import os
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem

from tidegate.errors import CheckpointError, StateError
from tidegate.state.files import (
    Entry,
    Files,
    RemoteFiles,
    files_at,
    guard,
    reason,
)
from tidegate.state.manifest import VERSION, Manifest, check_version
from tidegate.state.seal import REMEDY, seal, unseal
from tidegate.whole_file import is_temporary

META = "meta.json"
FOLDERS = ("manifest", "segment", "gate", "staged", "epoch")
LAYOUT = VERSION

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:/")
_MANIFEST = re.compile(r"manifest/(\d{8,})\.json")
_EPOCHS = re.compile(r"epoch/(\d{8,})\.json")
_in_process: WeakValueDictionary[int, FileSystem] = WeakValueDictionary()
_tokens = itertools.count()


@dataclass(frozen=True)
class StoreHandle:
    """What a task gets instead of a store: small and picklable; `open` costs no I/O.

    A store on a file system that cannot be pickled (an in-memory one) has a handle that opens only
    in the process that made it, and only while that file system is in use there; anywhere else
    `open` is a CheckpointError.
    """

    location: str
    place: tuple[FileSystem, str] | None = None
    token: tuple[int, int, str] | None = None

    def open(self) -> Store:
        if self.token is not None:
            process, number, path = self.token
            fs = _in_process.get(number) if process == os.getpid() else None
            if fs is None:
                raise CheckpointError(
                    self.location,
                    "must be a checkpoint that every process can open",
                    "a file system that lives in the memory of another process",
                    "Use a folder or a URI, or run without Spark.",
                )
            return Store(files_at(fs, path), self)
        return Store(files_at(*self.place), self) if self.place else Store.open(self.location)


@dataclass(frozen=True)
class Cleaned:
    """What `Store.clean` removed: files by kind, and bytes in all."""

    temporary: int = 0
    segments: int = 0
    gate: int = 0
    staged: int = 0
    manifests: int = 0
    epochs: int = 0
    bytes: int = 0


class Store:
    """One checkpoint. Opening changes nothing. One driver at a time writes; tasks write segments.

    Names of files are relative to the location, with `/`. Every write is whole or not at all.
    """

    def __init__(self, files: Files, handle: StoreHandle) -> None:
        self.files = files
        self.location = handle.location
        self._handle = handle
        self._older: Manifest | None = None

    @classmethod
    def open(cls, location: str | os.PathLike[str] | tuple[FileSystem, str]) -> Store:
        """A folder, a `file:///...` or other URI of `pyarrow.fs`, or a file system and a path."""
        if isinstance(location, tuple):
            files = files_at(*location)
            return cls(files, _handle_of(location, files))
        location = os.fspath(location)
        if not _URI.match(location):
            files = files_at(LocalFileSystem(), location)
            return cls(files, StoreHandle(files.root))
        try:
            fs, path = FileSystem.from_uri(location)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise CheckpointError(
                location,
                "must be a folder or the URI of one",
                str(error).splitlines()[0],
                "URIs start with file://, s3://, gs://, abfs:// or hdfs://.",
            ) from error
        return cls(files_at(fs, path), StoreHandle(location))

    def handle(self) -> StoreHandle:
        """What to send to tasks."""
        return self._handle

    def create(self, meta: Mapping[str, Any]) -> None:
        """Make an empty checkpoint whose `meta()` is this; the same again is no change.

        A folder that has files of a checkpoint but no meta.json, or another meta.json, is a
        CheckpointError: nothing in it is touched.
        """
        there = self.meta()
        if there is not None:
            if there != unseal(seal({"meta": dict(meta)}), META)["meta"]:
                raise CheckpointError(
                    self.location,
                    "must be empty or the checkpoint of the same query",
                    "the checkpoint of another one",
                    "Choose another folder, or delete this one to start anew.",
                )
            return
        for folder in FOLDERS:
            found = [e for e in self.files.list(folder, recursive=True) if not is_temporary(e.name)]
            if found:
                raise CheckpointError(
                    self.location,
                    "must be empty or a checkpoint with its meta.json",
                    f"{found[0].name} without meta.json",
                    "Restore meta.json from a copy, or choose an empty folder.",
                )
        try:
            for folder in FOLDERS:
                self.files.make(folder)
            self.write(META, seal({"layout": LAYOUT, "meta": dict(meta)}).encode())
        except StateError as error:
            remedy = "Make room or give access, or choose another folder."
            raise CheckpointError(error.where, error.requirement, error.got, remedy) from error

    def meta(self) -> dict[str, Any] | None:
        """What `create` was given, or None where there is no checkpoint."""
        where = self.files.full(META)
        try:
            raw = self.files.buffer(META)
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            requirement, remedy = "the checkpoint must be a folder", "Choose another --checkpoint."
            raise CheckpointError(self.files.root, requirement, reason(error), remedy) from error
        except OSError as error:
            remedy = "Choose a folder that can be read and written."
            raise CheckpointError(where, "must be readable", reason(error), remedy) from error
        body = unseal(raw.to_pybytes(), where)
        check_version(body.get("layout"), where)
        meta: dict[str, Any] = body["meta"]
        return meta

    def latest(self) -> Manifest | None:
        """The newest published state, or None before the first batch; damage is a StateError."""
        batches = self.batches()
        return self.manifest(batches[-1]) if batches else None

    def batches(self) -> list[int]:
        """The batches whose manifests are there, ascending. Lists a folder: for starts only."""
        found = (_MANIFEST.fullmatch(entry.name) for entry in self.files.list("manifest"))
        return sorted(int(match[1]) for match in found if match)

    def manifest(self, batch: int) -> Manifest:
        """The manifest of one batch; missing or damaged is a StateError that names the file."""
        name = manifest_name(batch)
        manifest = Manifest.from_json(self.read(name), self.files.full(name))
        if manifest.batch != batch:
            got = f"that of batch {manifest.batch}"
            raise StateError(self.files.full(name), f"must be of batch {batch}", got, REMEDY)
        return manifest

    def publish(self, manifest: Manifest, replaces: Manifest | None = None) -> None:
        """Make a batch count. Its segments must be written before. The same again is no change.

        `replaces` is the manifest of the same batch that is there, where it has run again.
        """
        name = manifest_name(manifest.batch)
        text = manifest.to_json().encode()
        expected = None if replaces is None else replaces.to_json().encode()
        if self.files.exists(name) and (there := self.read(name)) != expected:
            if there == text:
                return
            raise StateError(
                self.files.full(name),
                "must not be there before its batch is committed",
                "a manifest of another run",
                "Stop the other run that uses this checkpoint, and restart.",
            )
        self.write(name, text)

    def retire(
        self, previous: Manifest | None, current: Manifest, replaced: Manifest | None = None
    ) -> int:
        """After `publish(current)`: delete what neither it nor its predecessor needs; how many.

        `replaced` is the manifest that was in the place of `current` before. The other files to
        delete are what the manifest before `previous` lists and these two do not; the cost is that
        of the manifests' length and never that of the number of batches done. What a crash leaves
        undone `clean` does.
        """
        if previous is None:
            return 0
        if replaced is not None:
            spare = sorted(replaced.names() - previous.names() - current.names())
            return sum(self.delete(name) for name in spare)
        if previous.batch < 0:
            return 0
        older = self._older
        if older is None or older.batch >= previous.batch:
            name = manifest_name(previous.batch - 1)
            known = previous.batch > 0 and self.files.exists(name)
            older = self.manifest(previous.batch - 1) if known else None
        self._older = previous
        if older is None:
            return 0
        # The manifest goes first: should the rest fail, no manifest misses a file it lists.
        names = [manifest_name(older.batch)]
        names += sorted(older.names() - previous.names() - current.names())
        return sum(self.delete(name) for name in names)

    def settle(self) -> None:
        """At a start, before anything is done that builds on this state: make it last.

        What a run reads that was killed after it had committed need not be on the disk; if it is
        lost with the next loss of power, what was published after it must not be there alone.
        """
        self.files.settle(FOLDERS)

    def clean(self) -> Cleaned:
        """At a start, before any task writes: delete what a crash left and no state needs.

        Kept are the newest manifest, its predecessor and what they list, staged files of the newest
        batch (their names have its number in eight digits), and the history it counts. First it is
        checked that all files of the newest state are there in their size; if not, a StateError,
        and nothing was changed. Without meta.json nothing is touched.
        """
        if self.meta() is None:
            return Cleaned()
        kept = self.kept()
        if kept:
            self.check_present(kept[-1])
        removed = self.unreferenced(kept)
        for entry in removed:
            self.delete(entry.name)
        self.files.prune("staged")
        self._older = kept[0] if len(kept) == 2 else None
        lasting = [entry.name for entry in removed if not is_temporary(entry.name)]
        count = {f: sum(name.startswith(f + "/") for name in lasting) for f in FOLDERS}
        return Cleaned(
            temporary=len(removed) - len(lasting),
            segments=count["segment"],
            gate=count["gate"],
            staged=count["staged"],
            manifests=count["manifest"],
            epochs=count["epoch"],
            bytes=sum(entry.bytes for entry in removed),
        )

    def kept(self) -> list[Manifest]:
        """The newest manifest and, before it, its predecessor, as far as there are any."""
        batches = self.batches()[-2:]
        newest = [self.manifest(batch) for batch in batches[-1:]]
        try:
            return [self.manifest(batch) for batch in batches[:-1]] + newest
        except StateError as error:
            raise StateError(
                error.where,
                error.requirement,
                error.got,
                "The newer manifest beside it is whole and enough: delete this file and restart.",
            ) from error

    def unreferenced(self, kept: list[Manifest]) -> list[Entry]:
        """The files of the checkpoint that these manifests, newest last, do not need."""
        needed = frozenset[str]().union(*(manifest.names() for manifest in kept))
        needed |= {manifest_name(manifest.batch) for manifest in kept}
        newest = f"{kept[-1].batch:08d}" if kept else None
        logged = kept[-1].epochs_logged if kept else 0
        found = [e for e in self.files.list("") if _is_own_temporary(e.name)]
        for folder in FOLDERS:
            for entry in self.files.list(folder, recursive=folder == "staged"):
                own = is_temporary(entry.name) or _is_own(folder, entry.name)
                staged = folder == "staged" and newest in re.findall(r"\d+", entry.name)
                history = _EPOCHS.fullmatch(entry.name)
                counts = staged or (history is not None and int(history[1]) < logged)
                spare = entry.name in needed or (counts and not is_temporary(entry.name))
                if own and not spare:
                    found.append(entry)
        return found

    def write(self, name: str, data: bytes) -> None:
        """Write a small file whole (gate and staged files, meta, manifests)."""
        with self.files.create(name) as out:
            out.write(data)

    def read(self, name: str) -> bytes:
        """All bytes of a file; missing or unreadable is a StateError that names it."""
        raw = guard(lambda: self.files.buffer(name), self.files.full(name), REMEDY)
        return bytes(raw.to_pybytes())

    def delete(self, name: str) -> bool:
        """Remove a file; False if it was gone already."""
        try:
            return self.files.delete(name)
        except OSError as error:
            where = self.files.full(name)
            remedy = "Give the right to delete it, and restart."
            raise StateError(where, "must be deletable", reason(error), remedy) from error

    def check_present(self, manifest: Manifest) -> None:
        """Raise a StateError where a file of a state is missing or has another size."""
        sizes = {e.name: e.bytes for f in FOLDERS for e in self.files.list(f, recursive=True)}
        wanted: dict[str, int | None] = {s.path: s.bytes for s in manifest.segments()}
        wanted.update(dict.fromkeys(manifest.files))
        for name, size in wanted.items():
            where = self.files.full(name)
            if name not in sizes:
                raise StateError(where, "must be there", "no such file", REMEDY)
            if size is not None and sizes[name] != size:
                got = f"{sizes[name]} bytes"
                requirement = f"must have {size} bytes, as its manifest says"
                raise StateError(where, requirement, got, REMEDY)


def manifest_name(batch: int) -> str:
    """The file of a batch's manifest, below the root of the store."""
    return f"manifest/{batch:08d}.json"


def epochs_name(first: int) -> str:
    """The file with the epochs from a number on, below the root of the store."""
    return f"epoch/{first:08d}.json"


def _is_own(folder: str, name: str) -> bool:
    if folder == "staged":
        return True
    named = {"manifest": _MANIFEST, "epoch": _EPOCHS}.get(folder)
    return name.endswith(".arrow") if named is None else named.fullmatch(name) is not None


def _is_own_temporary(name: str) -> bool:
    return is_temporary(name) and name.startswith(f".{META}.")


def _handle_of(place: tuple[FileSystem, str], files: Files) -> StoreHandle:
    if not isinstance(files, RemoteFiles):
        return StoreHandle(files.root)
    location = files.full("").rstrip("/")
    try:
        pickle.dumps(place)
    except (TypeError, AttributeError, pickle.PicklingError):
        number = next(_tokens)
        _in_process[number] = files.fs
        return StoreHandle(location, token=(os.getpid(), number, files.root))
    return StoreHandle(location, place=place)
