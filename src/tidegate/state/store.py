"""Reads and writes a checkpoint, on any file system.

Layout: ``meta.json | manifest/NNNNNNNN.json | segment/*.arrow | gate/*.arrow | staged/* |
epoch/NNNNNNNN.O.json | table/*.arrow | archive/*.json``. Only a published manifest makes other
files count, so a crash at any point leaves the state before it.

`owner` decides which run may publish, `handle` how tasks find the location, `leftover` which files
no state needs, and `archive` keeps the states of earlier batches.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pyarrow.fs import FileSystem

from tidegate.errors import CheckpointError, OptionError, StateError
from tidegate.remote.folder import Entry
from tidegate.remote.reason import remedy
from tidegate.remote.scheme import scheme_of, without_keys
from tidegate.state.archive.archive import PACKED, Archive, archived
from tidegate.state.files import Files, LocalFiles, files_at, guard, reason
from tidegate.state.handle import StoreHandle, files_of, handle_of
from tidegate.state.identity import IDENTITY
from tidegate.state.leftover import CleanedFiles, outdated, unreferenced
from tidegate.state.manifest import VERSION, Manifest, check_version
from tidegate.state.name import ARCHIVE, META, lists_files, manifest_name, manifest_number
from tidegate.state.owner import Found, Owner
from tidegate.state.seal import REMEDY, seal, unseal
from tidegate.storage.durable import Due
from tidegate.storage.whole_file import is_temporary

FOLDERS = ("manifest", "segment", "gate", "staged", "epoch", "table", ARCHIVE)
LAYOUT = VERSION
_READABLE = "Give access to it, or see that its server answers, and restart."
_LOOKS = 5
"""How often `create` looks for a checkpoint that another run has just made."""


class Store:
    """One checkpoint. Opening changes nothing. One driver at a time writes; tasks write segments.

    Names of files are relative to the location, with `/`. Every write is whole or not at all.
    """

    def __init__(self, files: Files, handle: StoreHandle) -> None:
        self.files = files
        self.location = without_keys(handle.location)
        self._handle = handle
        self._older: Manifest | None = None
        self._archive: Archive | None = None
        self._found: Found | None = None

    @classmethod
    def open(cls, location: str | os.PathLike[str] | tuple[FileSystem, str]) -> Store:
        """A folder, a `file:///...` or other URI of `pyarrow.fs`, or a file system and a path."""
        if isinstance(location, tuple):
            files = files_at(*location)
            return cls(files, handle_of(location, files))
        location = os.fspath(location)
        if scheme_of(location) is None:
            local = LocalFiles(location)
            return cls(local, StoreHandle(local.root))
        try:
            files, location = files_of(location)
        except OptionError as error:
            raise CheckpointError(
                error.where, error.requirement, error.got, error.remedy
            ) from error
        return cls(files, StoreHandle(location))

    @cached_property
    def _run(self) -> Owner:
        """The claim of the run that uses this object; only drivers have one."""
        return Owner(self)

    @property
    def owner(self) -> int:
        """The fencing number of the run that uses this object; 0 until `enter`."""
        return self._run.number

    def handle(self) -> StoreHandle:
        """The handle by which tasks open this store."""
        return self._handle

    def make(self) -> None:
        """Make the folder of the checkpoint unless it is there."""
        try:
            self.files.make("")
        except StateError as error:
            raise _unusable(error) from error

    def create(self, meta: Mapping[str, Any]) -> bool:
        """Make an empty checkpoint whose `meta()` is this; False if it is there already.

        Of several runs that try at the same time exactly one succeeds. A folder with files of a
        checkpoint but without meta.json, or with another meta.json, is a CheckpointError, and
        nothing in it is touched.
        """
        for _ in range(_LOOKS):
            if self._is_of(meta):
                return False
            # meta.json last: with it the folder is a checkpoint, and whoever sees it may rely on
            # the folders. A crash before leaves empty folders, which count as nothing.
            self._check_empty()
            try:
                for folder in FOLDERS:
                    self.files.make(folder)
                text = seal({"layout": LAYOUT, "meta": dict(meta)}).encode()
                if self.files.put_new(META, text):
                    return True
            except StateError as error:
                raise _unusable(error) from error
        raise CheckpointError(
            self.location,
            f"must show {META} to who reads it once it refuses to create it again",
            "a store that says both that it exists and that it does not",
            "See that this run may read as well as write there and that no cache stands before "
            "the store, or choose another place.",
        )

    def _is_of(self, meta: Mapping[str, Any]) -> bool:
        """Whether the checkpoint has this meta.json; another meta.json is a CheckpointError."""
        there = self.meta()
        if there is None:
            return False
        asked = unseal(seal({"meta": dict(meta)}), META)["meta"]
        if there != {**asked, **{n: v for n, v in there.items() if n == IDENTITY}}:
            raise CheckpointError(
                self.location,
                "must be empty or the checkpoint of the same query",
                "the checkpoint of another one",
                "Choose another folder, or delete this one to start anew.",
            )
        return True

    def _check_empty(self) -> None:
        """Raise a CheckpointError if there are files of a checkpoint without meta.json."""
        for folder in FOLDERS:
            try:
                listed = self._files_in(folder)
            except StateError as error:
                raise _unusable(error) from error
            found = [entry for entry in listed if not is_temporary(entry.name)]
            if found:
                raise CheckpointError(
                    self.location,
                    "must be empty or a checkpoint with its meta.json",
                    f"{found[0].name} without meta.json",
                    "Restore meta.json from a copy, or choose an empty folder.",
                )

    def begin(self, meta: Mapping[str, Any]) -> bool:
        """`create`, by the first run of a checkpoint; `clean` then looks at files from before it.

        Another run may take over before this one cleans. Files are listed first, so that `clean`
        never deletes what that run has written.
        """
        listed = self.listed()
        made = self.create(meta)
        if made:
            self._found = [], listed
        return made

    def meta(self) -> dict[str, Any] | None:
        """What `create` was given; None if there is no checkpoint."""
        where = self.files.full(META)
        try:
            raw = self.files.buffer(META)
        except FileNotFoundError:
            self._check_answers()
            return None
        except NotADirectoryError as error:
            requirement, remedy = "the checkpoint must be a folder", "Choose another folder."
            raise CheckpointError(self.files.root, requirement, reason(error), remedy) from error
        except OSError as error:
            raise self._unreadable(where, error) from error
        body = unseal(raw.to_pybytes(), where)
        check_version(body.get("layout"), where)
        meta: dict[str, Any] = body["meta"]
        return meta

    def _check_answers(self) -> None:
        """Raise an error if a remote place without a checkpoint cannot have one: no such bucket."""
        if self.files.local:
            return
        try:
            self.files.is_folder()
        except OSError as error:
            raise self._unreadable(self.files.root, error) from error

    def _unreadable(self, where: str, error: OSError) -> CheckpointError:
        advice = "Choose a folder that can be read and written."
        if not self.files.local:
            advice = remedy(error)
        return CheckpointError(where, "must be readable", reason(error), advice)

    def latest(self) -> Manifest | None:
        """The newest published state; None before the first batch. Damage is a StateError."""
        numbers = self.numbers()
        newest = self.manifest(numbers[-1]) if numbers else None
        return newest if newest is not None and newest.batch >= 0 else None

    def numbers(self) -> list[int]:
        """The numbers of the manifests that are there, ascending; lists a folder of few files."""
        where = self.files.full("manifest")
        names = guard(lambda: self.files.names("manifest"), where, _READABLE)
        found = (manifest_number(name) for name in names)
        return sorted(number for number in found if number is not None)

    def manifest(self, number: int) -> Manifest:
        """The manifest with a number; a missing or damaged one is a StateError that names it."""
        name = manifest_name(number)
        manifest = Manifest.from_json(self.read(name), self.files.full(name))
        if manifest.number != number:
            got = f"that of number {manifest.number}"
            raise StateError(self.files.full(name), f"must be of number {number}", got, REMEDY)
        return manifest

    def enter(self, first: Manifest, holder: Mapping[str, Any]) -> Manifest:
        """Take the checkpoint over; returns the newest state, or `first`, with a new owner.

        From then on no earlier run can commit. A finished state is returned as it is, because
        nothing comes after it. Before that, all files of the newest state must be there with their
        sizes; otherwise it is a StateError, and nothing was changed.
        """
        entry, self._found = self._run.enter(first, holder)
        return entry

    def withdraw(self) -> None:
        """Undo `enter` if nothing was done since: an earlier run that is at work may go on."""
        self._run.withdraw()

    def resumed(self, manifest: Manifest) -> Manifest:
        """An earlier state, from which the run makes the batch after it once more.

        What it writes from now on has other names than what it wrote for the newest state.
        """
        return self._run.resumed(manifest)

    def publish(self, manifest: Manifest, due: Due | None = None) -> None:
        """Make a batch count. All files of the state must be written before; may be repeated.

        What is `due` is synced beside the manifest's own bytes, and before the manifest gets its
        name: a loss of power never leaves a manifest without its files. If another run has taken
        the checkpoint over, it is a FencedError, and the batch does not count.
        """
        self._run.publish(manifest, due)

    def check_owner(self) -> None:
        """Raise a FencedError if another run has taken the checkpoint over."""
        self._run.check()

    def keep(self, keep_us: int, packed: int | None = None) -> None:
        """Keep the states of earlier batches for a time from now on; call before `clean`."""
        self._archive = Archive(self, keep_us, packed or PACKED)

    def retire(
        self, previous: Manifest | None, current: Manifest, replaced: Manifest | None = None
    ) -> int:
        """Delete what neither `current` nor `previous` needs; returns the number of files.

        Call it after `publish(current)`. Deleted are the manifest before `previous` and the files
        that it lists and these two do not. `replaced` is the manifest of the same batch before it
        ran again, if it did. The cost depends on the length of manifests, never on the number of
        batches done. If a crash comes in between, the next `clean` deletes the rest.
        """
        if previous is None:
            return 0
        if replaced is not None:
            return sum(self.delete(name) for name in outdated(replaced, previous, current))
        if previous.batch < 0:
            return 0
        older = self._older
        # Known from the last call, except after a start or after a batch that ran again.
        if older is None or older.batch >= previous.batch:
            older = self.before(previous)
        self._older = previous
        if older is None:
            return 0
        if self._archive is not None:
            return self._archive.retire(older, previous, current)
        return sum(self.delete(name) for name in outdated(older, previous, current))

    def settle(self) -> None:
        """Make the state durable; call it at a start, before anything that builds on the state.

        A run that was killed right after a commit may have left files that can be read and are not
        on the disk yet. If power were lost later, newer manifests could be there without them.
        """
        self.files.settle(FOLDERS)

    def clean(self) -> CleanedFiles:
        """Delete what a crash left and no state needs; call it at a start, before any task writes.

        Kept are the newest manifest, its predecessor and what they list, staged files of the newest
        batch (their names have its number in eight digits), and the history that it counts. After
        `enter` only files that were there before it are deleted: none of a run that has taken over
        since. All files of the newest state must be there with their sizes; otherwise it is a
        StateError, and nothing was changed. Without meta.json nothing is touched.
        """
        if self.meta() is None:
            return CleanedFiles()
        kept, listed = self._found or (self.kept(), self.listed())
        self._found = None
        self._run.stay()
        if kept:
            self.check_present(kept[-1], listed)
        needed = frozenset[str]() if self._archive is None else self._archive.enter(kept, listed)
        removed = unreferenced(kept, listed, needed)
        # Files that list others go first: after a crash none lists a file that is missing.
        for entry in sorted(removed, key=lambda e: not lists_files(e.name)):
            self.delete(entry.name)
        self.files.prune("staged")
        self._older = kept[0] if len(kept) == 2 else None
        return CleanedFiles.of(removed)

    def kept(self) -> list[Manifest]:
        """The newest manifest, after the one of the batch before, as far as they are there.

        The newest one may be of batch -1: then nothing is committed yet.
        """
        numbers = self.numbers()
        newest = [self.manifest(number) for number in numbers[-1:]]
        before = self.before(newest[0]) if newest else None
        return newest if before is None else [before, *newest]

    def before(self, manifest: Manifest) -> Manifest | None:
        """The newest manifest of an earlier batch that is there."""
        for number in reversed([n for n in self.numbers() if n < manifest.number]):
            try:
                older = self.manifest(number)
            except StateError as error:
                remedy = "The newer manifest beside it is whole and enough: delete this file and "
                raise StateError(
                    error.where, error.requirement, error.got, f"{remedy}restart."
                ) from error
            if older.batch < manifest.batch:
                return older
        return None

    def unreferenced(
        self, kept: Sequence[Manifest], listed: Sequence[Entry] | None = None
    ) -> list[Entry]:
        """The files of the checkpoint that these manifests (newest last) do not need.

        Files of archived states count as needed if the run that wrote the newest manifest keeps an
        archive.
        """
        listed = self.listed() if listed is None else listed
        keeps = bool(kept) and kept[-1].at_us > 0
        return unreferenced(kept, listed, archived(self, kept, listed)[1] if keeps else frozenset())

    def listed(self) -> list[Entry]:
        """All files of the checkpoint, except those of sources."""
        root = guard(lambda: self.files.list(""), self.files.full(""), _READABLE)
        return [*root, *(entry for folder in FOLDERS for entry in self._files_in(folder))]

    def _files_in(self, folder: str) -> list[Entry]:
        found = guard(lambda: self.files.list(folder, True), self.files.full(folder), _READABLE)
        return list(found)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file whole (gate and staged files, meta, manifests)."""
        with self.files.create(name) as out:
            out.write(data)

    def has(self, name: str) -> bool:
        """Whether a file is there; a StateError if that cannot be found out."""
        return guard(lambda: self.files.exists(name), self.files.full(name), _READABLE)

    def read(self, name: str) -> bytes:
        """All bytes of a file; a missing or unreadable one is a StateError that names it."""
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

    def check_present(self, manifest: Manifest, listed: Sequence[Entry] | None = None) -> None:
        """Raise a StateError if a file of a state is missing or has another size."""
        found = self.listed() if listed is None else listed
        sizes = {entry.name: entry.bytes for entry in found}
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


def _unusable(error: StateError) -> CheckpointError:
    remedy = "Make room or give access, or choose another folder."
    return CheckpointError(error.where, error.requirement, error.got, remedy)
