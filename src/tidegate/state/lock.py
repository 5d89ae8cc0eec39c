"""The claim of one process on a checkpoint, between a run that starts and one still at work.

Without it the second would take what the first has not committed yet for left-overs of a crash. The
system gives the claim up when a process ends, however it ends. Only on local and mounted file
systems; elsewhere `Store.publish` still refuses the manifest of another run.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from dataclasses import dataclass

from tidegate.errors import CheckpointError
from tidegate.state.files import reason
from tidegate.state.store import Store

LOCK = "lock"

_guard = threading.Lock()
_held: dict[tuple[int, str], _Claim] = {}
"""By process, because a forked one has not inherited the claim, and path of the file."""


@dataclass
class _Claim:
    file: int
    holders: int = 1


class Lock:
    """One run's claim; several runs of one process share it, and know what they do."""

    def __init__(self, store: Store) -> None:
        self._location = store.location
        path = os.path.realpath(store.files.full(LOCK)) if store.files.local else None
        self._key = (os.getpid(), path) if path is not None else None
        self._taken = False

    def take(self) -> None:
        """Claim the checkpoint, which must exist; a CheckpointError where another process has."""
        if self._key is None or self._taken:
            return
        with _guard:
            claim = _held.get(self._key)
            if claim is None:
                _held[self._key] = _Claim(self._claimed(self._key[1]))
            else:
                claim.holders += 1
            self._taken = True

    def release(self) -> None:
        """Give the claim up; may be called again."""
        if self._key is None or not self._taken:
            return
        with _guard:
            self._taken = False
            claim = _held[self._key]
            claim.holders -= 1
            if not claim.holders:
                del _held[self._key]
                os.close(claim.file)

    def _claimed(self, path: str) -> int:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            remedy = "Make room or give access, or choose another folder."
            raise CheckpointError(path, "must be writable", reason(error), remedy) from error
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return file  # a file system without locks, or a full one: go on as on a remote one
            holder = os.pread(file, 20, 0).decode(errors="replace").strip()
            os.close(file)
            raise CheckpointError(
                self._location,
                "must be used by one run at a time",
                f"one that process {holder or 'of another run'} uses",
                "Wait until it has ended, or stop it, and start again.",
            ) from error
        return file
