"""Locks a checkpoint for one run; another run is refused while the first one works.

Without the lock, a second run would take uncommitted files of the first for left-overs of a crash.
The system releases the lock when the process ends, however it ends. There are locks on local and
mounted file systems. Elsewhere only runs of the same process are refused; of several processes the
last one to start goes on, and `Store.publish` refuses the manifests of the others.
"""

from __future__ import annotations

import errno
import os
import platform
import threading
from weakref import WeakValueDictionary

from tidegate.errors import CheckpointError
from tidegate.state.files import reason
from tidegate.state.store import Store
from tidegate.storage import disk

LOCK = "lock"

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
"""The errors of file systems that have no locks."""

_guard = threading.Lock()
_remote: WeakValueDictionary[tuple[int, str], Lock] = WeakValueDictionary()
"""The runs of this process on stores without locks, by process and location. By process, because
this one may be a fork."""


class Lock:
    """The lock of one run; any other run, of this or another process, is refused."""

    def __init__(self, store: Store) -> None:
        self._location = store.location
        self._path = store.files.full(LOCK) if store.files.local else None
        self._everywhere = store.handle().token is None
        """Whether the location identifies the store in all processes; not for one in memory."""
        self._claim: disk.FileLock | None = None

    def take(self) -> None:
        """Lock the checkpoint, which must exist; a CheckpointError if another run has the lock."""
        if self._path is None:
            self._take_here()
            return
        if self._claim is not None:
            return
        try:
            holder = f"{os.getpid()} {platform.node()}\n"
            self._claim = disk.current().claim(self._path, holder.encode())
        except BlockingIOError as error:
            raise self._taken(self._path) from error
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return  # go on as on a remote file system
            remedy = "Make room or give access, or choose another folder."
            raise CheckpointError(self._path, "must be writable", reason(error), remedy) from error

    @property
    def held(self) -> bool:
        """Whether the system's lock is held; false where the file system has no locks."""
        return self._claim is not None

    def release(self) -> None:
        """Release the lock; may be called again."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        with _guard:
            if _remote.get(self._key) is self:
                del _remote[self._key]

    def _take_here(self) -> None:
        """Lock a store without locks against other runs of this process."""
        with _guard:
            if _remote.get(self._key, self) is not self:
                raise self._taken_here()
            if self._everywhere:
                _remote[self._key] = self

    @property
    def _key(self) -> tuple[int, str]:
        return os.getpid(), self._location

    def _taken(self, path: str) -> CheckpointError:
        process, _, host = disk.read(path, 0, 300).decode(errors="replace").strip().partition(" ")
        elsewhere = f" on {host}" if host and host != platform.node() else ""
        if process == str(os.getpid()) and not elsewhere:
            return self._taken_here()
        return CheckpointError(
            self._location,
            "must be used by one run at a time",
            f"one that process {process or 'of another run'}{elsewhere} uses",
            "Wait until it has ended, or stop it, and start again.",
        )

    def _taken_here(self) -> CheckpointError:
        return CheckpointError(
            self._location,
            "must be used by one query at a time",
            f"one that another query of this very process ({os.getpid()}) uses",
            "Stop that query first, with query.stop(), or give this one another checkpoint.",
        )
