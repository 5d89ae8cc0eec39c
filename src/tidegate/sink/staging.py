"""The folder `_staging` of an output, between parts that are written and a batch that is published.

::

    _staging/tasks-OOOOOOOO/...           parts as writers leave them, each under a name of its own
    _staging/batch=NNNNNNNN.OOOOOOOO-A/   the parts of a batch that its driver is about to commit

O is the number of the run (its owner), A counts how often it has begun a batch. Tasks know the
first folder only, and only that of their run. So one that comes late, of a try that failed or of a
driver that is gone, writes where nobody looks, or finds no folder; what is committed it cannot
reach. A folder of a batch is never added to once it is committed: it is moved into place as it is.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tidegate import disk
from tidegate.durable import gathered
from tidegate.sink.batch_ledger import NO_FILE
from tidegate.sink.receipt import Receipt
from tidegate.whole_file import sync_names

STAGING = "_staging"
ATTEMPT, FILE = "attempt", "file"
"""What receipts have in `more`: of a batch that is about to be committed whose try it is; before
that, the file that a writer has left."""

_TASKS = re.compile(r"tasks-(\d+)")
_BATCH = re.compile(r"batch=(\d+)\.(\d+)-\d+(?:\..+)?")
_CHUNK_BYTES = 1 << 20


class Staging:
    """What one run has in `_staging`, and the ways there; folders stay from batch to batch."""

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
        """Make room for a try of a batch, whose name is returned; what others left is removed.

        `keep` is a batch that is committed and not published yet.
        """
        self.sweep(keep, ended=False)
        self._begun += 1
        while is_there(self.attempt(batch, self._name)):  # one that is kept
            self._begun += 1
        made = disk.make_folders(self.tasks)
        for folder in made[:-1]:  # but for the last, in which nothing stays
            disk.current().sync_folder(os.path.dirname(folder))
        return self._name

    def seal(self, batch: str, attempt: str, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Put the parts of a batch together in a folder that no task knows, and make it durable.

        The bytes of the parts are on the disk already, or gathered, so their names are what is
        synced: inwards out, because a name is found by way of those above it. One sync for a
        folder, however many parts are in it.
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
        for inner in reversed(folders):
            sync_names(inner)
        sync_names(self.folder)
        if not self._synced:  # a run that was killed may have made the folder, and no more
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
        """Remove what this run and those before it have left, but for tries of a batch to keep.

        What a later run has is its own. Where something cannot be removed, because a late task is
        just writing there, it stays for the next time.
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
    """Whether there is a file or a folder; a disk that does not say is an OSError."""
    try:
        disk.current().status(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def damage(path: Path, receipt: Receipt, contents: bool) -> str | None:
    """What is wrong with a part, in words; the size is looked at always, the bytes on demand."""
    try:
        size = disk.current().status(path).bytes
    except (FileNotFoundError, NotADirectoryError):
        return NO_FILE
    if size != receipt.bytes:
        return f"{size} bytes, where {receipt.bytes} were written"
    if contents and checksum_of(path) != receipt.checksum:
        return "other bytes than were written"
    return None


def first_damage(places: Iterable[tuple[Path, Receipt]], contents: bool) -> tuple[Path, str] | None:
    """The first part that is not as its receipt says, and what is wrong with it."""
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
