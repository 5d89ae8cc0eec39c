"""The files of this host: all that reads or writes one goes through here.

Everything the engine does with local files goes through the `Disk` that `current` gives: state,
results, input, and what tasks exchange. It is that of the operating system, unless a test has put
another in its place (`using`) to cut the power, fill the disk or tear a write at a chosen moment.

Errors are those of the operating system (OSError and its kin); who calls puts them into words.
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
    """A file or a folder: its size, when it was changed, and what stays when its name changes."""

    bytes: int
    modified_ns: int
    inode: int
    folder: bool


class FileLock(Protocol):
    """A file that is locked for whoever holds this; the system lets go of it with the process."""

    def release(self) -> None:
        """Let another have it."""


class Readable(Protocol):
    """What can be read of files by their paths, here or on another file system."""

    def status(self, path: Path) -> Status:
        """What is at a path; FileNotFoundError, NotADirectoryError where nothing is."""

    def open(self, path: Path) -> IO[bytes]:
        """A file to read."""

    def open_arrow(self, path: Path) -> pa.NativeFile:
        """A file to read here and there, for Arrow's own readers."""


class Disk(Readable, Protocol):
    """What can be done with files and folders by their paths; paths without `/` are of the present
    folder. Links to files are followed."""

    notifies: bool
    """Whether the kernel can tell of new names in its folders."""

    def is_link(self, path: Path) -> bool:
        """Whether a path is a symbolic link."""

    def writable(self, folder: Path) -> bool:
        """Whether this user may make files in a folder."""

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, in no order."""

    def walk(self, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        """As `os.walk`, from the top; links to folders are named and not gone into.

        A folder that is not there is passed over, one that cannot be listed is an OSError: who
        takes it for empty may throw away what is in it.
        """

    def matching(self, pattern: str) -> list[str]:
        """The paths that match a glob, with `**` for folders of any depth; none is no error."""

    def map(self, path: Path) -> pa.Buffer:
        """A file as memory, shared with all that map it; its name may go, the bytes stay."""

    def create(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        """A new file to write; FileExistsError where the path is taken."""

    def sync(self, file: IO[bytes]) -> None:
        """Make what was written to a file of `create` outlive a loss of power; not its name."""

    def sync_file(self, path: Path) -> None:
        """Make what was written to a file outlive a loss of power, by whoever; not its name."""

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder outlive a loss of power."""

    def replace(self, source: Path, target: Path) -> None:
        """Give a file or a folder another name, in one step; a file of that name is gone."""

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, in one step; FileExistsError where the name is taken."""

    def unlink(self, path: Path) -> None:
        """Take the name of a file away."""

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        """Make a folder in one that is there; FileExistsError where the path is taken."""

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""

    def claim(self, path: Path, holder: bytes) -> FileLock:
        """Lock a file, made where it is missing, and write into it who holds it.

        BlockingIOError where it is locked, also by this process. Another OSError where the file
        system has no locks.
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
        """Permissions, and a try: in some file systems, as /proc, they allow what then fails."""
        if not os.access(folder, os.W_OK | os.X_OK):
            return False
        try:
            os.rmdir(tempfile.mkdtemp(prefix=".tidegate-", dir=folder))
        except OSError as error:
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
    """Sync a file or a folder by a descriptor of its own; any will do."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


class _Flock:
    """A locked file that is open; the lock is that of this opening, not of the process.

    Who is let go of without a word does not hold it any more.
    """

    def __init__(self, file: int) -> None:
        self._close = weakref.finalize(self, os.close, file)

    def release(self) -> None:
        self._close()


class Elsewhere(Readable, Protocol):
    """Files of another file system, to be read; picklable, and small."""

    def read(self, path: RemotePath, offset: int, length: int) -> bytes:
        """Bytes of a file, to its end where the length is negative; fewer where it is shorter."""

    def fetch(self, ranges: Sequence[tuple[RemotePath, int, int]]) -> None:
        """Read many small ranges (path, offset, length) at once, for `read` to have them soon."""

    def files(self, path: RemotePath) -> list[RemotePath]:
        """The files below a folder, of any depth, as they are listed; none where it is missing."""


class RemotePath(str):
    """The path of a file or folder on another file system, which it knows and is opened by.

    As a text it is the URI a person would write, without what stands in it to get access. What is
    made of it by way of texts is a plain text again. `listed` is
    what a listing said of it, so that nobody has to ask again.
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
"""That of the system, and above it the one that stands in for it."""


def current() -> Disk:
    """The disk that this process works on."""
    return _disks[-1]


def at(path: Path) -> Readable:
    """Where the file of a path is to be read: on this disk, or where the path says."""
    return path.disk if isinstance(path, RemotePath) else current()


def is_remote(path: Path) -> bool:
    """Whether a path is one of another file system."""
    return isinstance(path, RemotePath)


def seen(path: Path) -> Status:
    """What is at a path; of a file elsewhere that was listed, what the listing said."""
    listed = path.listed if isinstance(path, RemotePath) else None
    return listed or at(path).status(path)


def absolute(path: str) -> str:
    """A path by which a process that was started elsewhere finds the same file."""
    return path if isinstance(path, RemotePath) else os.path.abspath(path)


@contextmanager
def using(disk: Disk) -> Iterator[Disk]:
    """Work on another disk within the block, in all threads."""
    _disks.append(disk)
    try:
        yield disk
    finally:
        _disks.remove(disk)


def exists(path: Path) -> bool:
    """Whether there is a file or a folder at a path that this user may look at."""
    return _found(path) is not None


def is_file(path: Path) -> bool:
    """Whether there is something at a path that is not a folder."""
    found = _found(path)
    return found is not None and not found.folder


def is_folder(path: Path) -> bool:
    """Whether there is a folder at a path."""
    found = _found(path)
    return found is not None and found.folder


def _found(path: Path) -> Status | None:
    """What is at a path. A disk that fails is an OSError: it does not say that nothing is there."""
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
    """Bytes of a file, to its end where no length is given; fewer where it is shorter."""
    if isinstance(path, RemotePath):
        return path.disk.read(path, offset, length)
    with current().open(path) as file:
        file.seek(offset)
        return file.read(length)


def make_folders(path: Path, mode: int = 0o777) -> list[str]:
    """Make a folder and those above it that are missing; which were made, the uppermost first."""
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
    """Make the name of a folder outlive a loss of power, and those of the folders above it.

    Also those that are there: a run that was killed may have made them, and no more. Folders that
    this user may not read were made by others.
    """
    place = os.path.abspath(path)
    with suppress(PermissionError):
        while (above := os.path.dirname(place)) != place:
            current().sync_folder(above)
            place = above


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it. What goes in the meantime, by others, is fine."""
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
    """Take the name of a file away; False where there was none."""
    try:
        current().unlink(path)
    except FileNotFoundError:
        return False
    return True
