"""Keeps the parts of a batch in the folder `_staging` of an output until it is published.

::

    _staging/tasks-OOOOOOOO/...           parts as writers leave them, each under a name of its own
    _staging/batch=NNNNNNNN.OOOOOOOO-A/   the parts of a batch that its driver is about to commit

O is the number of the run (its owner), A counts how often it has begun a batch. Tasks know only the
first folder, that of their own run. So a late task, of a try that failed or of a driver that is
gone, writes where nobody looks, or finds no folder; it cannot reach what is committed. Once a batch
is committed, nothing is added to its folder: it is moved into place as it is.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidegate.sink.receipt import Receipt
from tidegate.storage import disk
from tidegate.storage.durable import gathered
from tidegate.storage.whole_file import sync_names

STAGING = "_staging"
ATTEMPT, FILE = "attempt", "file"
"""Keys of `Receipt.more`. A writer's receipt names its FILE in the folder of tasks; the receipts of
a sealed batch name the ATTEMPT instead."""

_TASKS = re.compile(r"tasks-(\d+)")
_BATCH = re.compile(r"batch=(\d+)\.(\d+)-\d+(?:\..+)?")
_CHUNK_BYTES = 1 << 20


class Staging:
    """The part of `_staging` that one run uses. Its folder for tasks stays from batch to batch."""

    def __init__(self, output: Path, owner: int) -> None:
        self.folder = output / STAGING
        self.owner = owner
        self._output = output
        self._begun = 0
        self._synced = False

    @property
    def tasks(self) -> Path:
        """Where the tasks of this run write parts."""
        return self.folder / f"tasks-{self.owner:08d}"

    def begin(self, batch: str, keep: int | None) -> str:
        """Make the folders for a try of a batch, and remove what earlier tries left.

        Returns the name of the try. `keep` is a batch that is committed and not published yet:
        its folder stays.
        """
        self.sweep(keep, ended=False)
        self._begun += 1
        while is_there(self.attempt(batch, self._name)):  # the folder that `keep` protects
            self._begun += 1
        made = disk.make_folders(self.tasks)
        for folder in made[:-1]:  # not the last one: parts leave it before the commit
            disk.current().sync_folder(os.path.dirname(folder))
        return self._name

    def seal(self, batch: str, attempt: str, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Move the parts of a batch into a folder that no task knows, and make it durable.

        Called once all parts are written, before the commit. The bytes of the parts are already on
        disk, or gathered (`durable`), so only names are synced: one sync for each folder, however
        many parts it holds.
        """
        folder, due = self.attempt(batch, attempt), gathered()
        sealed, folders = [], [folder]
        disk.current().make_folder(folder)
        for receipt in receipts:
            target = folder / receipt.name
            if target.parent not in folders:
                disk.current().make_folder(target.parent)
                folders.append(target.parent)
            disk.current().replace(self.tasks / receipt.more[FILE], target)
            if due is not None:
                due.move(self.tasks / receipt.more[FILE], target)
            sealed.append(replace(receipt, more={ATTEMPT: attempt}))
        # From the inside out: when the outer name survives a loss of power, all below it does too.
        for inner in reversed(folders):
            sync_names(inner)
        sync_names(self.folder)
        if not self._synced:  # a killed run may have made the output folder without syncing it
            disk.current().sync_folder(self._output)
            disk.sync_above(self._output)
            self._synced = True
        return sealed

    @staticmethod
    def drop_unnamed(folder: Path, receipts: Sequence[Receipt]) -> None:
        """Remove from the folder of a batch whatever no receipt names, whoever put it there."""
        named = {os.path.join(folder, receipt.name) for receipt in receipts}
        for place, _, files in disk.current().walk(folder):
            for path in (os.path.join(place, file) for file in files):
                if path not in named:
                    disk.unlink_if_there(path)

    def attempt(self, batch: str, attempt: str) -> Path:
        """The folder of a try of a batch."""
        return self.folder / f"{batch}.{attempt}"

    def attempts(self, batch: str) -> list[Path]:
        """The folders of all tries of a batch that are there."""
        return [self.folder / n for n in names_in(self.folder) if n.startswith(f"{batch}.")]

    def sweep(self, keep: int | None, *, ended: bool) -> None:
        """Remove what this run and earlier ones left, except the tries of the batch `keep`.

        What a later run has written stays. What cannot be removed, because a late task is writing
        there at this moment, stays until the next sweep. `ended` also removes the folder of tasks.
        """
        try:
            names = names_in(self.folder)
        except OSError:
            return
        for name in names:
            path, tasks, batch = self.folder / name, _TASKS.fullmatch(name), _BATCH.fullmatch(name)
            if tasks is not None and int(tasks[1]) <= self.owner:
                self._discard(path, inside=int(tasks[1]) == self.owner and not ended)
            if batch is not None and int(batch[2]) <= self.owner and int(batch[1]) != keep:
                self._discard(path)
        if ended:
            with suppress(OSError):  # not there, or not empty
                disk.current().remove_folder(self.folder)

    @property
    def _name(self) -> str:
        return f"{self.owner:08d}-{self._begun}"

    @staticmethod
    def _discard(folder: Path, inside: bool = False) -> None:
        with suppress(OSError):
            if not inside:
                disk.remove_tree(folder)
                return
            for name in disk.current().names(folder):
                disk.unlink_if_there(folder / name)


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where it is not there."""
    try:
        return sorted(disk.current().names(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_there(path: Path) -> bool:
    """Whether there is a file or a folder; an OSError where the disk does not answer."""
    try:
        disk.current().status(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def damage(path: Path, receipt: Receipt, contents: bool) -> str | None:
    """What is wrong with a part, in words: by its size, and with `contents` by its bytes too."""
    size: int | None = None
    with suppress(FileNotFoundError, NotADirectoryError):
        size = disk.current().status(path).bytes
    return receipt.mismatch(size, partial(checksum_of, path) if contents else None)


def first_damage(places: Iterable[tuple[Path, Receipt]], contents: bool) -> tuple[Path, str] | None:
    """The first part that differs from its receipt, and how."""
    for path, receipt in places:
        wrong = damage(path, receipt, contents)
        if wrong is not None:
            return path, wrong
    return None


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file, read a piece at a time."""
    checksum = 0
    with disk.current().open(path) as file:
        while piece := file.read(_CHUNK_BYTES):
            checksum = zlib.crc32(piece, checksum)
    return checksum
