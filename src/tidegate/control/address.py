"""Records the path of a query's control socket, and finds it again.

The path of a socket must be short, but checkpoints have long paths or are on other file systems. So
the socket is in a private temporary folder, and a small file records its path: `control.json` in a
local checkpoint; for a remote checkpoint, a file of the user on the driver's host.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.user_folder import user_folder
from tidegate.storage.whole_file import temporary

RECORD = "control.json"
"""The name of the file in a local checkpoint."""

SOCKET = "ctl"
"""The name of a socket, and the prefix of its folder's name."""
FOLDER = "tidegate-ctl-"
"""The name of the socket, and the prefix of its folder's name."""


@dataclass(frozen=True)
class ControlAddress:
    """The socket of a run, and the process, host and user that own it.

    `folder` is the inode of a local checkpoint. A copied checkpoint has another inode, so a command
    for the copy does not reach the query that runs on the original.
    """

    socket: str
    process: int
    host: str
    user: int
    since: str
    folder: int | None = None

    @staticmethod
    def here(path: str, since: str) -> ControlAddress:
        """The address of a socket of this process."""
        return ControlAddress(path, os.getpid(), platform.node(), os.geteuid(), since)

    def of(self, store: Store) -> ControlAddress:
        """The address for a run on this checkpoint."""
        return replace(self, folder=_inode(store))

    @property
    def is_here(self) -> bool:
        """Whether the socket is on this host."""
        return self.host == platform.node()


def record_path(store: Store) -> str | None:
    """The file with a checkpoint's address; None for a checkpoint in a process's memory."""
    if store.files.local:
        return store.files.full(RECORD)
    if store.handle().token is not None:
        return None
    name = hashlib.sha256(store.location.encode()).hexdigest()[:32]
    return str(user_folder() / "control" / f"{name}.json")


def write_record(path: str, address: ControlAddress) -> None:
    """Publishes an address for this user's other processes; replaces an older one."""
    disk.make_folders(os.path.dirname(path), 0o700)
    aside = temporary(path)
    try:
        # Not synced: after a loss of power no process is left at this address.
        with disk.current().create(aside, 0o600) as file:
            file.write(json.dumps(asdict(address)).encode() + b"\n")
        disk.current().replace(aside, path)
    except OSError:
        with suppress(OSError):  # the first error is the one to report
            disk.unlink_if_there(aside)
        raise


def read_record(path: str, store: Store) -> ControlAddress | None:
    """The address for a checkpoint; None if the file is missing, damaged or for another folder."""
    try:
        found: Mapping[str, Any] = json.loads(disk.read(path))
        address = ControlAddress(**found)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
    whole = isinstance(address.socket, str) and isinstance(address.process, int)
    return address if whole and address.folder == _inode(store) else None


def _inode(store: Store) -> int | None:
    return disk.current().status(store.files.root).inode if store.files.local else None


def remove_record(path: str, store: Store, address: ControlAddress) -> None:
    """Removes an address, unless another run has replaced it."""
    if read_record(path, store) == address:
        disk.unlink_if_there(path)


def remove_left(address: ControlAddress) -> None:
    """Removes the socket of a run on this host that was killed before it could."""
    folder = os.path.dirname(address.socket)
    ours = address.is_here and address.user == os.geteuid()
    if ours and os.path.basename(folder).startswith(FOLDER):
        with suppress(OSError):  # it may be gone, or be something else by now
            os.unlink(address.socket)
            os.rmdir(folder)
