"""A disk in memory that loses what was not synced, and fails when it is told to.

For every file and folder it keeps both what the engine sees and what would survive a loss of power.
Bytes survive once `sync` was called for their file, names once `sync_folder` was called for their
folder. `power_loss` keeps a random part of the rest. Every operation is a step of the schedule:
there another thread may run, a process may die, and the operation itself may fail.
"""

from __future__ import annotations

import errno
import glob
import io
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, cast

import pyarrow as pa

from tidegate.storage.disk import Path, Status
from tidegate.testing.simulation.node import (
    File,
    Named,
    Node,
    SimulatedFolder,
    files_below,
    folders_seen,
    matches,
    parts_of,
    synced_folders,
)
from tidegate.testing.simulation.process import SimulatedProcess
from tidegate.testing.simulation.schedule import SimSchedule

BEGIN_NS = 1_700_000_000_000_000_000

CHANGES = (
    "create",
    "write",
    "sync",
    "sync_folder",
    "replace",
    "link",
    "unlink",
    "make_folder",
    "remove_folder",
)
"""The names of the operations that change the disk; steps of the schedule prefix `disk`."""


class SimDisk:
    """A `tidegate.storage.disk.Disk` in memory; its caller is the running process of the schedule.

    `fail` may raise an OSError for an operation, given its name and path. `written` returns the
    part of a write that reaches the file. `room_bytes` is how much may still be written, None for
    any amount. `locks` says whether the disk has locks at all, `unclaimed` who has let one go.
    """

    notifies = False

    def __init__(self, schedule: SimSchedule) -> None:
        self._schedule = schedule
        self._inodes = 1
        self._root = SimulatedFolder(1, BEGIN_NS)
        self._pending: list[Named] = []
        self._files: dict[int, File] = {}
        """The files that may have bytes that are not synced."""
        self._claims: dict[int, tuple[SimulatedProcess | None, bytes]] = {}
        self.unclaimed: list[SimulatedProcess | None] = []
        self.fail: Callable[[str, str], None] = lambda operation, path: None
        self.written: Callable[[str, bytes], bytes] = lambda path, data: data
        self.room_bytes: int | None = None
        self.locks = True
        self.operations = 0
        self.hidden: dict[str, float] = {}
        """Paths that listings show only from a time on, though they can be opened before."""

    # What the engine does with it

    def status(self, path: Path) -> Status:
        self._operation("status", path)
        node = self._node(path)
        size = len(node.data) if isinstance(node, File) else 0
        return Status(size, node.modified_ns, node.inode, isinstance(node, SimulatedFolder))

    def is_link(self, path: Path) -> bool:
        return False

    def writable(self, folder: Path) -> bool:
        return True

    def names(self, folder: Path) -> list[str]:
        self._operation("names", folder)
        return self._names(folder)

    def walk(self, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        top = os.fspath(folder)
        try:
            here, names = self._folder(top), self.names(top)
        except (FileNotFoundError, NotADirectoryError):
            return
        folders = [n for n in names if isinstance(here.names.get(n), SimulatedFolder)]
        yield top, folders, [n for n in names if n not in folders]
        for name in folders:
            yield from self.walk(os.path.join(top, name))

    def matching(self, pattern: str) -> list[str]:
        self._operation("names", pattern)
        base = pattern
        while glob.has_magic(base):
            base = os.path.dirname(base)
        return [p for p in self._below(base or ".") if matches(p, pattern)]

    def open(self, path: Path) -> IO[bytes]:
        self._operation("open", path)
        return io.BytesIO(self._file(path).data)

    def open_arrow(self, path: Path) -> pa.NativeFile:
        self._operation("open", path)
        return pa.BufferReader(self._file(path).data)

    def map(self, path: Path) -> pa.Buffer:
        self._operation("map", path)
        return pa.py_buffer(self._file(path).data)

    def create(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        self._operation("create", path)
        folder, name = self._place(path)
        if name in folder.names:
            raise _error(errno.EEXIST, path)
        self._inodes += 1
        file = File(self._inodes, self._now_ns())
        self._change(Named(file, gained=(folder, name)))
        writing = _Writing(self, os.fspath(path), file, self._schedule.process)
        return cast(IO[bytes], writing)

    def sync(self, file: IO[bytes]) -> None:
        writing = cast(_Writing, file)
        writing.flush()
        self._operation("sync", writing.path)
        writing.file.synced = writing.file.data

    def sync_file(self, path: Path) -> None:
        self._operation("sync", path)
        file = self._file(path)
        file.synced = file.data

    def sync_folder(self, path: Path) -> None:
        self._operation("sync_folder", path)
        folder = self._folder(path)
        for change in [c for c in self._pending if c.folder is folder]:
            self._settle(change)

    def replace(self, source: Path, target: Path) -> None:
        self._operation("replace", target)
        (old, name), (new, wanted) = self._place(source), self._place(target)
        if name not in old.names:
            raise _error(errno.ENOENT, source)
        node, there = old.names[name], new.names.get(wanted)
        if there is node:
            return  # two names of one file stay, as POSIX has it
        if isinstance(node, SimulatedFolder) and new in folders_seen(node):
            raise _error(errno.EINVAL, target)
        if isinstance(there, SimulatedFolder) and not isinstance(node, SimulatedFolder):
            raise _error(errno.EISDIR, target)
        if isinstance(there, SimulatedFolder) and there.names:
            raise _error(errno.ENOTEMPTY, target)
        if isinstance(there, File) and isinstance(node, SimulatedFolder):
            raise _error(errno.ENOTDIR, target)
        self._change(Named(node, gained=(new, wanted), lost=(old, name)))

    def link(self, source: Path, target: Path) -> None:
        self._operation("link", target)
        node, (folder, name) = self._node(source), self._place(target)
        if name in folder.names:
            raise _error(errno.EEXIST, target)
        if isinstance(node, SimulatedFolder):
            raise _error(errno.EPERM, source)
        self._change(Named(node, gained=(folder, name)))

    def unlink(self, path: Path) -> None:
        self._operation("unlink", path)
        folder, name = self._place(path)
        self._change(Named(self._file(path), lost=(folder, name)))

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        self._operation("make_folder", path)
        folder, name = self._place(path)
        if name in folder.names:
            raise _error(errno.EEXIST, path)
        self._inodes += 1
        made = SimulatedFolder(self._inodes, self._now_ns())
        self._change(Named(made, gained=(folder, name)))

    def remove_folder(self, path: Path) -> None:
        self._operation("remove_folder", path)
        folder, name = self._place(path)
        node = self._folder(path)
        if node.names:
            raise _error(errno.ENOTEMPTY, path)
        self._change(Named(node, lost=(folder, name)))

    def claim(self, path: Path, holder: bytes) -> SimClaim:
        self._operation("claim", path)
        if not self.locks:
            raise _error(errno.ENOLCK, path)
        folder, name = self._place(path)
        if name not in folder.names:
            self._inodes += 1
            made = File(self._inodes, self._now_ns())
            self._change(Named(made, gained=(folder, name)))
        file = self._file(path)
        if file.inode in self._claims:
            raise _error(errno.EAGAIN, path)
        file.data = holder
        self._claims[file.inode] = (self._schedule.process, holder)
        claim = SimClaim(self, file.inode)
        if self._schedule.process is not None:
            self._schedule.process.at_death.append(claim.let_go)
        return claim

    # What happens to it

    def power_loss(self, seed: int | str) -> None:
        """Lose or tear what is not synced; the processes that used the disk must be dead.

        A file may keep, lose, truncate or zero what was not synced of it. Of the changes of names
        either the first ones stay, or any of them.
        """
        # Both kinds of file systems exist: journals keep the order of changes, others do not. Code
        # that is right on only one of them must fail here.
        chance = random.Random(f"power {seed}")
        in_order = chance.random() < 0.5
        kept = chance.randint(0, len(self._pending)) if in_order else 0
        for number, change in enumerate(list(self._pending)):
            if number < kept if in_order else chance.random() < 0.5:
                change.settle()
        self._pending.clear()
        for file in self._files.values():
            file.tear(chance)
        self._files.clear()
        self._claims.clear()
        for folder in synced_folders(self._root):
            folder.names = dict(folder.synced)

    def put(self, path: Path, data: bytes, append: bool = False) -> None:
        """Write a file as an outsider: durably, without a step; `append` keeps the inode."""
        self.make_parents(path)
        folder, name = self._place(path)
        there = folder.names.get(name)
        if isinstance(there, File) and append:
            there.data = there.synced = there.data + data
            there.modified_ns = self._now_ns()
            return
        self._inodes += 1
        folder.names[name] = File(self._inodes, self._now_ns(), data, data)
        folder.synced[name] = folder.names[name]
        folder.modified_ns = self._now_ns()

    def rewrite(self, path: Path, data: bytes, modified_ns: int | None = None) -> None:
        """Change the bytes of a file in place. For bit rot pass the old time of change."""
        file = self._file(path)
        file.data = file.synced = data
        file.modified_ns = self._now_ns() if modified_ns is None else modified_ns

    def remove(self, path: Path) -> File:
        """Remove a file durably; `give_back` restores it."""
        file, (folder, name) = self._file(path), self._place(path)
        del folder.names[name]
        folder.synced.pop(name, None)
        self._pending = [c for c in self._pending if c.gained != (folder, name)]
        return file

    def give_back(self, path: Path, file: File) -> None:
        """Restore a file that `remove` has returned."""
        folder, name = self._place(path)
        folder.names[name] = folder.synced[name] = file

    def make_parents(self, path: Path) -> None:
        """Create the folders above a path, durably."""
        folder = self._root
        for part in parts_of(path)[:-1]:
            below = folder.names.get(part)
            if below is None:
                self._inodes += 1
                below = folder.names[part] = SimulatedFolder(self._inodes, self._now_ns())
                folder.synced[part] = below
            assert isinstance(below, SimulatedFolder)
            folder = below

    def read(self, path: Path) -> bytes:
        """The bytes of a file, without a step."""
        return self._file(path).data

    def files(self, folder: Path = "/") -> list[str]:
        """All files below a folder, sorted, without a step; none where there is no folder."""
        try:
            top = self._folder(folder)
        except OSError:
            return []
        return sorted(files_below(os.fspath(folder).rstrip("/"), top))

    # How it does it

    def _operation(self, name: str, path: Path) -> None:
        """Every operation begins with this: here others run, and faults strike."""
        self._schedule.step(f"disk {name}")
        self._schedule.check()
        self.operations += 1
        self.fail(name, os.fspath(path))

    def _write(self, writing: _Writing, data: bytes) -> None:
        self._operation("write", writing.path)
        data = self.written(writing.path, data)
        room = self.room_bytes
        if room is not None:
            data, rest = data[:room], data[room:]
            self.room_bytes = room - len(data)
        writing.file.data += data
        writing.file.modified_ns = self._now_ns()
        self._files[writing.file.inode] = writing.file
        if room is not None and rest:
            raise _error(errno.ENOSPC, writing.path)
        self._schedule.check()

    def _change(self, change: Named) -> None:
        """Make a change of names visible; it stays pending until its folder is synced."""
        if change.lost is not None:
            folder, name = change.lost
            del folder.names[name]
            folder.modified_ns = self._now_ns()
        if change.gained is not None:
            folder, name = change.gained
            folder.names[name] = change.node
            folder.modified_ns = self._now_ns()
        self._pending.append(change)

    def _settle(self, change: Named) -> None:
        change.settle()
        place = self._pending.index(change)
        # Else an older change that made a name, which this one moves away, could bring it back.
        before = [c for c in self._pending[:place] if not c.is_void(change)]
        self._pending = before + self._pending[place + 1 :]

    def _now_ns(self) -> int:
        return BEGIN_NS + round(self._schedule.clock.now() * 1e9)

    def _node(self, path: Path, parts: Sequence[str] | None = None) -> Node:
        node: Node = self._root
        for part in parts_of(path) if parts is None else parts:
            if isinstance(node, File):
                raise _error(errno.ENOTDIR, path)
            if part not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[part]
        return node

    def _file(self, path: Path) -> File:
        node = self._node(path)
        if isinstance(node, SimulatedFolder):
            raise _error(errno.EISDIR, path)
        return node

    def _folder(self, path: Path, parts: Sequence[str] | None = None) -> SimulatedFolder:
        node = self._node(path, parts)
        if isinstance(node, File):
            raise _error(errno.ENOTDIR, path)
        return node

    def _place(self, path: Path) -> tuple[SimulatedFolder, str]:
        *above, name = parts_of(path)
        return self._folder(path, above), name

    def _names(self, folder: Path) -> list[str]:
        names = list(self._folder(folder).names)
        if self.hidden:
            now, base = self._schedule.clock.now(), os.fspath(folder)
            names = [n for n in names if self.hidden.get(os.path.join(base, n), now) <= now]
        return names

    def _below(self, folder: str) -> Iterator[str]:
        try:
            here = self._folder(folder)
        except OSError:
            return
        for name in self._names(folder):
            path = os.path.join(folder, name)
            yield path
            if isinstance(here.names[name], SimulatedFolder):
                yield from self._below(path)


class SimClaim:
    """A locked file; its holder releases it, or the death of its process does."""

    def __init__(self, disk: SimDisk, inode: int) -> None:
        self._disk = disk
        self._inode = inode

    def release(self) -> None:
        self._disk._schedule.check()
        self.let_go()

    def let_go(self) -> None:
        self._disk.unclaimed.append(self._disk._claims.pop(self._inode, (None, b""))[0])


class _Writing(io.RawIOBase):
    """A file being written, with a buffer as Python's files have: a crash loses what is in it."""

    def __init__(
        self, disk: SimDisk, path: str, file: File, process: SimulatedProcess | None
    ) -> None:
        super().__init__()
        self.path = path
        self.file = file
        self._disk = disk
        self._process = process
        self._buffer: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)
        self._buffer.append(taken)
        return len(taken)

    def tell(self) -> int:
        return len(self.file.data) + sum(map(len, self._buffer))

    def flush(self) -> None:
        if not self._buffer:
            return
        given, self._buffer = b"".join(self._buffer), []
        if self._process is self._disk._schedule.process:
            self._disk._write(self, given)

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
            finally:
                super().close()


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), os.fspath(path))
