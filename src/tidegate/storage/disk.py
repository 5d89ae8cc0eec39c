"""Local files: all reading and writing of files goes through the `Disk` that `current` returns.

That holds for state, results, input, and the files that tasks exchange. `current` is the disk of
the operating system unless a test has installed another with `using`, to cut the power, fill the
disk or tear a write at a chosen moment.

Methods raise the errors of the operating system (OSError and its subclasses); callers put them into
words.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple, Protocol

import pyarrow as pa

Path = str | os.PathLike[str]


class Status(NamedTuple):
    """A file's or folder's size, time of last change, and inode, which survives renaming."""

    bytes: int
    modified_ns: int
    inode: int
    folder: bool


class FileLock(Protocol):
    """A lock on a file, held by this object; the operating system frees it if the process dies."""

    def release(self) -> None:
        """Unlocks the file."""


class Readable(Protocol):
    """Reading files by path, on this host or on another file system."""

    def status(self, path: Path) -> Status:
        """What is at a path; FileNotFoundError or NotADirectoryError if nothing is."""

    def open(self, path: Path) -> IO[bytes]:
        """Opens a file for reading."""

    def open_arrow(self, path: Path) -> pa.NativeFile:
        """Opens a file for random access by Arrow's readers."""


class Disk(Readable, Protocol):
    """Local files and folders by path. Relative paths start at the current folder; links to files
    are followed.
    """

    notifies: bool
    """Whether the kernel can report new names in its folders (inotify)."""

    def is_link(self, path: Path) -> bool:
        """Whether a path is a symbolic link."""

    def writable(self, folder: Path) -> bool:
        """Whether this user may make files in a folder."""

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, unordered."""

    def walk(self, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        """As `os.walk`, top down; links to folders are listed but not entered.

        A missing folder is skipped. A folder that cannot be listed raises OSError: a caller who
        took it for empty might delete what is in it.
        """

    def matching(self, pattern: str) -> list[str]:
        """The paths that match a glob; `**` matches folders of any depth. No match is no error."""

    def map(self, path: Path) -> pa.Buffer:
        """Maps a file into shared memory. The bytes stay valid after the file is unlinked."""

    def create(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        """Creates a file for writing; FileExistsError if the path is taken."""

    def sync(self, file: IO[bytes]) -> None:
        """Makes the bytes of a file from `create` survive a loss of power, but not its name."""

    def sync_file(self, path: Path) -> None:
        """Makes a file's bytes, whoever wrote them, survive a loss of power, but not its name."""

    def sync_folder(self, path: Path) -> None:
        """Makes the names in a folder survive a loss of power."""

    def replace(self, source: Path, target: Path) -> None:
        """Renames a file or folder atomically; a file that had the new name is gone."""

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name atomically; FileExistsError if that name is taken."""

    def unlink(self, path: Path) -> None:
        """Removes a file's name."""

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        """Creates a folder whose parent exists; FileExistsError if the path is taken."""

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""

    def claim(self, path: Path, holder: bytes) -> FileLock:
        """Locks a file, created if missing, and writes into it who holds the lock.

        Raises BlockingIOError if it is locked already, also by this process; another OSError if the
        file system has no locks.
        """


class SystemDisk:
    """The disk of the operating system."""

    notifies = True

    def status(self, path: Path) -> Status:
        found = os.stat(path)
        is_folder = found.st_mode & 0o170000 == 0o040000
        return Status(found.st_size, found.st_mtime_ns, found.st_ino, is_folder)

    def is_link(self, path: Path) -> bool:
        return os.path.islink(path)

    def writable(self, folder: Path) -> bool:
        """Checks permissions, then tries: on /proc and the like they allow what then fails."""
        if not os.access(folder, os.W_OK | os.X_OK):
            return False
        try:
            os.rmdir(tempfile.mkdtemp(prefix=".tidegate-", dir=folder))
        except OSError as error:
            # A full disk is no lack of permission: whoever writes later gets the truer error.
            return error.errno in (errno.ENOSPC, errno.EDQUOT)
        return True

    def names(self, folder: Path) -> list[str]:
        return os.listdir(folder)

    def walk(self, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        return os.walk(os.fspath(folder), onerror=_raise_unless_gone)

    def matching(self, pattern: str) -> list[str]:
        return glob.glob(pattern, recursive=True)

    def open(self, path: Path) -> IO[bytes]:
        return open(path, "rb")

    def open_arrow(self, path: Path) -> pa.NativeFile:
        return pa.OSFile(os.fspath(path), "rb")

    def map(self, path: Path) -> pa.Buffer:
        if os.path.getsize(path) == 0:  # an empty file cannot be mapped
            return pa.py_buffer(b"")
        with pa.memory_map(os.fspath(path)) as file:
            return file.read_buffer()

    def create(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))

    def sync(self, file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())

    def sync_file(self, path: Path) -> None:
        _sync(path)

    def sync_folder(self, path: Path) -> None:
        _sync(path)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        os.mkdir(path, mode)

    def remove_folder(self, path: Path) -> None:
        os.rmdir(path)

    def claim(self, path: Path, holder: bytes) -> FileLock:
        # Not a lock of fcntl: those go when any code of the process closes the file.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        with suppress(OSError):  # the disk may be full: it is locked all the same
            os.truncate(file, 0)
            os.pwrite(file, holder, 0)
        return _Flock(file)


def _sync(path: Path) -> None:
    """Opens a file or folder, syncs and closes it; any descriptor of it will do."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


class _Flock:
    """An open, locked file. The lock belongs to this opening, not to the process.

    If the object is dropped without `release`, the file is closed and so unlocked.
    """

    def __init__(self, file: int) -> None:
        self._close = weakref.finalize(self, os.close, file)

    def release(self) -> None:
        self._close()


class Elsewhere(Readable, Protocol):
    """Reading files of another file system; picklable and small."""

    def read(self, path: RemotePath, offset: int, length: int) -> bytes:
        """Bytes of a file. A negative length reads to the end; a shorter file gives fewer bytes."""

    def fetch(self, ranges: Sequence[tuple[RemotePath, int, int]]) -> None:
        """Reads many small ranges (path, offset, length) at once, so that `read` is quick later."""

    def files(self, path: RemotePath) -> list[RemotePath]:
        """All files below a folder, at any depth, in listing order; none if it is missing."""


class RemotePath(str):
    """A path on another file system; it carries the `disk` that opens it.

    Its text is the URI that a person would write, without credentials. String operations on it
    return plain `str`. `listed` is the status from a listing, which saves a request.
    """

    __slots__ = ("disk", "listed")
    disk: Elsewhere
    listed: Status | None

    def __new__(cls, text: str, disk: Elsewhere, listed: Status | None = None) -> RemotePath:
        made = super().__new__(cls, text)
        made.disk = disk
        made.listed = listed
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return RemotePath, (str(self), self.disk, self.listed)


_disks: list[Disk] = [SystemDisk()]
"""The system's disk, and on top of it those that tests have installed."""


def current() -> Disk:
    """The disk that this process works on."""
    return _disks[-1]


def at(path: Path) -> Readable:
    """Where to read the file of a path: this host's disk, or the one a remote path carries."""
    return path.disk if isinstance(path, RemotePath) else current()


def is_remote(path: Path) -> bool:
    """Whether a path is on another file system."""
    return isinstance(path, RemotePath)


def seen(path: Path) -> Status:
    """The status of a path; that of the listing, if a remote file was listed."""
    listed = path.listed if isinstance(path, RemotePath) else None
    return listed or at(path).status(path)


def absolute(path: str) -> str:
    """A path by which a process with another current folder finds the same file."""
    return path if isinstance(path, RemotePath) else os.path.abspath(path)


@contextmanager
def using(disk: Disk) -> Iterator[Disk]:
    """Installs another disk for the block, in all threads."""
    _disks.append(disk)
    try:
        yield disk
    finally:
        _disks.remove(disk)


def exists(path: Path) -> bool:
    """Whether a file or folder is at a path and this user may look at it."""
    return _found(path) is not None


def is_file(path: Path) -> bool:
    """Whether something other than a folder is at a path."""
    found = _found(path)
    return found is not None and not found.folder


def is_folder(path: Path) -> bool:
    """Whether there is a folder at a path."""
    found = _found(path)
    return found is not None and found.folder


def _found(path: Path) -> Status | None:
    """The status of a path, or None if nothing is there.

    A failing disk raises OSError: a failure must never look like a missing file.
    """
    try:
        return at(path).status(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except ValueError:  # no path of a file at all
        return None
    except OSError as error:
        if error.errno in _NO_PATH:
            return None
        raise


_NO_PATH = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})


def read(path: Path, offset: int = 0, length: int = -1) -> bytes:
    """Bytes of a file, to its end if no length is given; a shorter file gives fewer bytes."""
    if isinstance(path, RemotePath):
        return path.disk.read(path, offset, length)
    with current().open(path) as file:
        file.seek(offset)
        return file.read(length)


def make_folders(path: Path, mode: int = 0o777) -> list[str]:
    """Creates a folder and its missing parents; returns those created, outermost first."""
    missing = []
    place = os.path.abspath(path)
    while not is_folder(place):
        missing.append(place)
        above = os.path.dirname(place)
        if above == place:
            break
        place = above
    made = []
    for folder in reversed(missing):
        try:
            current().make_folder(folder, mode)
        except FileExistsError:
            if not is_folder(folder):
                raise
            continue  # another was quicker
        made.append(folder)
    return made


def sync_above(path: Path) -> None:
    """Makes the name of a folder, and of every folder above it, survive a loss of power.

    Folders that existed before are synced too: a run that was killed may have created them without
    syncing. Folders that this user may not read were created by others.
    """
    place = os.path.abspath(path)
    with suppress(PermissionError):
        while (above := os.path.dirname(place)) != place:
            current().sync_folder(above)
            place = above


def remove_tree(path: Path) -> None:
    """Removes a folder and its contents. Files that others remove meanwhile are no error."""
    found = list(current().walk(path))
    for folder, folders, files in reversed(found):
        for name in files:
            unlink_if_there(os.path.join(folder, name))
        for name in folders:
            place = os.path.join(folder, name)
            if current().is_link(place):
                unlink_if_there(place)
        try:
            current().remove_folder(folder)
        except FileNotFoundError:
            continue


def unlink_if_there(path: Path) -> bool:
    """Removes a file's name; returns False if there was none."""
    try:
        current().unlink(path)
    except FileNotFoundError:
        return False
    return True
