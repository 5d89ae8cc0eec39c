"""Writes files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Literal

from tidegate import disk, schedule
from tidegate.durable import Due, gathered


@contextmanager
def whole_file(
    path: str | os.PathLike[str],
    *,
    sync: Literal["nothing", "file", "folder"] = "file",
    parents: bool = False,
    folder_mode: int = 0o777,
) -> Iterator[IO[bytes]]:
    """A file to write, which takes the name `path` when the block ends without an error.

    Until then it has a name beside it that no other writer uses (`temporary`), so two that write
    the same path do not mix: the later one replaces the earlier one whole. An error or an interrupt
    removes what was written and leaves an older file of the name standing; a process that dies
    leaves the temporary file. An OSError comes out as it is, for the caller to put into words.

    `sync` is what must outlive a loss of power when this returns: the bytes, which costs an fsync,
    or with `folder` also the name, which costs a second one; where somebody gathers (`durable`),
    when that is synced. `parents` makes missing folders, with `folder_mode`.
    """
    path = os.fspath(path)
    aside = temporary(path)
    due = gathered()
    try:
        with _created(aside, parents, folder_mode) as file:
            yield file
            if sync != "nothing" and due is None:
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
    """Make the names in a folder outlive a loss of power, now or when what is gathered is."""
    due = gathered()
    if due is None:
        disk.current().sync_folder(folder)
    else:
        due.add_folder(folder)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write under a name that no other writer uses; its bytes are on the disk then.

    Or will be when what is gathered is. An error or an interrupt removes it; a process that dies
    leaves it. Costs an fsync.
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
    """Write a file whole, name and all, unless the name is taken; False then, and nothing changes.

    Of several that try at the same time one succeeds, on this host or, over NFS, on another. Where
    a file system has no second names for a file (FAT, some that are mounted from elsewhere) that
    holds only for one after the other. Costs two syncs, and makes missing folders. What is `due` is
    on the disk before the file has its name.
    """
    path = os.fspath(path)
    aside = temporary(path)
    due = due or Due()
    try:
        with _created(aside, parents=True, mode=folder_mode) as file:
            file.write(data)
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
    """Give a file its name where that is free."""
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
"""What file systems say whose files have one name only."""


class FileWriter:
    """Takes the bytes of a file, and counts and checksums (CRC-32) them on the way.

    Libraries that write into an open file take it for one; closing it is its owner's business.
    """

    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self.bytes = 0
        self.checksum = 0

    def write(self, data: Any) -> int:
        """Take bytes, or whatever else shows its memory as a buffer of them."""
        self._sink.write(data)
        self.checksum = zlib.crc32(data, self.checksum)
        self.bytes += len(data)
        return len(data)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        """Nothing: the file counts only when it is whole, and is flushed then."""

    def close(self) -> None:
        """Nothing: who opened the file closes it."""


def temporary(name: str) -> str:
    """A name beside `name` that no other writer uses, on this host or another."""
    folder, _, base = name.rpartition("/")
    # Two attempts of one task may write the same file at the same time; the token keeps them apart
    # and is never seen in a file that counts.
    token = schedule.current().token()
    return f"{folder}/.{base}.{token}.tmp" if folder else f".{base}.{token}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a name is one that `temporary` gives."""
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
