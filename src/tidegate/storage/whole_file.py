"""Writes files that appear complete or not at all, also when the process or the power fails."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Literal

from tidegate import schedule
from tidegate.storage import disk
from tidegate.storage.durable import Due, gathered


@contextmanager
def whole_file(
    path: str | os.PathLike[str],
    *,
    sync: Literal["nothing", "file", "folder"] = "file",
    parents: bool = False,
    folder_mode: int = 0o777,
) -> Iterator[IO[bytes]]:
    """A file to write that gets the name `path` when the block ends without an error.

    Until then it has a `temporary` name beside it that no other writer uses. So two writers of one
    path never mix: the later one replaces the file of the earlier one as a whole. After an error or
    an interrupt the temporary file is removed and an older file stays; a process that dies leaves
    the temporary file. OSErrors are raised unchanged, for the caller to put into words.

    `sync` says what survives a loss of power after this returns: "file" the bytes (one fsync),
    "folder" also the name (a second one). Inside `durable.gathering` the sync is left to whoever
    gathers. `parents` creates missing folders with `folder_mode`.
    """
    path = os.fspath(path)
    aside = temporary(path)
    due = gathered()
    try:
        # Bytes before the rename: the other way round, a power cut could leave the final name
        # on a file without its bytes. While gathering, the commit that makes the name count
        # comes after the sync.
        with _created(aside, parents, folder_mode) as file:
            yield file
            # One that is there may count already, and be synced: a task that runs twice replaces
            # it by equal bytes, which nobody syncs if its batch is over.
            if sync != "nothing" and (due is None or disk.is_file(path)):
                disk.current().sync(file)
        disk.current().replace(aside, path)
    except (Exception, KeyboardInterrupt):
        with suppress(OSError):  # the first error is the one to tell
            disk.current().unlink(aside)
        raise
    if due is not None and sync != "nothing":
        due.add_file(path)
    if sync == "folder":
        sync_names(os.path.dirname(path) or ".")


def sync_names(folder: str | os.PathLike[str]) -> None:
    """Makes the names in a folder survive a loss of power, now or when `gathering` is synced."""
    due = gathered()
    if due is None:
        disk.current().sync_folder(folder)
    else:
        due.add_folder(folder)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write under a name that no other writer uses; after the block its bytes are synced.

    Inside `durable.gathering` the sync is left to whoever gathers. After an error or an interrupt
    the file is removed; a process that dies leaves it. Costs one fsync.
    """
    due = gathered()
    try:
        with disk.current().create(path) as file:
            yield file
            if due is None:
                disk.current().sync(file)
    except (Exception, KeyboardInterrupt):
        with suppress(OSError):  # the first error is the one to tell
            disk.current().unlink(path)
        raise
    if due is not None:
        due.add_file(path)


def sole_file(
    path: str | os.PathLike[str], data: bytes, folder_mode: int = 0o777, due: Due | None = None
) -> bool:
    """Writes a file, complete and synced, unless its name is taken; returns False if it is.

    Of several concurrent writers exactly one succeeds, also across hosts over NFS. On a file system
    without hard links (FAT, some mounts) this holds only for writers one after the other. Costs two
    syncs and creates missing folders. Files in `due` are synced before this file gets its name.
    """
    path = os.fspath(path)
    aside = temporary(path)
    due = due or Due()
    try:
        with _created(aside, parents=True, mode=folder_mode) as file:
            file.write(data)
        # Before the file has its name: all that the name makes count, its own bytes included.
        due.add_file(aside)
        due.sync()
        named = _named(aside, path)
        disk.unlink_if_there(aside)
    except (Exception, KeyboardInterrupt):
        with suppress(OSError):  # the first error is the one to tell
            disk.current().unlink(aside)
        raise
    if named:
        due.add_folder(os.path.dirname(path) or ".")
        due.sync()
    return named


def _named(aside: str, path: str) -> bool:
    """Gives a file its final name if that is free. A link fails if the name exists; a rename would
    replace it.
    """
    try:
        disk.current().link(aside, path)
    except FileExistsError:
        # An NFS client that heard no answer asks again, and is told that its own file is there.
        return disk.current().status(aside).inode == disk.current().status(path).inode
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if disk.exists(path):
            return False
        disk.current().replace(aside, path)
    return True


_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Errors of file systems that have no hard links."""


class FileWriter:
    """Writes through to a file and keeps a byte count and a checksum (CRC-32).

    It has the methods that libraries expect of an open file. `close` does nothing: the owner of the
    file closes it.
    """

    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self.bytes = 0
        self.checksum = 0

    def write(self, data: Any) -> int:
        """Writes bytes, or any object with the buffer protocol."""
        self._sink.write(data)
        self.checksum = zlib.crc32(data, self.checksum)
        self.bytes += len(data)
        return len(data)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        """Does nothing: an unfinished file never counts, and its owner flushes a finished one."""

    def close(self) -> None:
        """Does nothing: whoever opened the file closes it."""


def temporary(name: str) -> str:
    """A name in the same folder that no other writer uses, on this host or another."""
    folder, _, base = name.rpartition("/")
    # Two attempts of one task may write the same file at the same time; the token keeps them apart
    # and is never seen in a file that counts.
    token = schedule.current().token()
    return f"{folder}/.{base}.{token}.tmp" if folder else f".{base}.{token}.tmp"


def is_temporary(name: str) -> bool:
    """Whether `temporary` could have made this name."""
    base = name.rpartition("/")[2]
    return base.startswith(".") and base.endswith(".tmp")


def _created(path: str, parents: bool, mode: int) -> IO[bytes]:
    try:
        return disk.current().create(path)
    except FileNotFoundError:
        if not parents:
            raise
        disk.make_folders(os.path.dirname(path), mode)
        return disk.current().create(path)
