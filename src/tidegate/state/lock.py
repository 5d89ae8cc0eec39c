"""The claim of one run on a checkpoint, between a run that starts and one still at work.

Without it the second would take what the first has not committed yet for left-overs of a crash. The
system gives the claim up when a process ends, however it ends. Only on local and mounted file
systems; elsewhere `Store.publish` still refuses the manifest of another run.
"""

from __future__ import annotations

import errno
import os

from tidegate import disk
from tidegate.errors import CheckpointError
from tidegate.state.files import reason
from tidegate.state.store import Store

LOCK = "lock"

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
"""What file systems say that have no locks."""


class Lock:
    """One run's claim; another run is refused, of this process or any other."""

    def __init__(self, store: Store) -> None:
        self._location = store.location
        self._path = store.files.full(LOCK) if store.files.local else None
        self._claim: disk.Claim | None = None

    def take(self) -> None:
        """Claim the checkpoint, which must exist; a CheckpointError where another run has."""
        if self._path is None or self._claim is not None:
            return
        try:
            self._claim = disk.current().claim(self._path, f"{os.getpid()}\n".encode())
        except BlockingIOError as error:
            raise self._taken(self._path) from error
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return  # go on as on a remote file system
            remedy = "Make room or give access, or choose another folder."
            raise CheckpointError(self._path, "must be writable", reason(error), remedy) from error

    def release(self) -> None:
        """Give the claim up; may be called again."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def _taken(self, path: str) -> CheckpointError:
        holder = disk.read(path, 0, 20).decode(errors="replace").strip()
        if holder == str(os.getpid()):
            return CheckpointError(
                self._location,
                "must be used by one query at a time",
                "one that another query of this process uses",
                "Stop that query first, with query.stop(), or give this one another checkpoint.",
            )
        return CheckpointError(
            self._location,
            "must be used by one run at a time",
            f"one that process {holder or 'of another run'} uses",
            "Wait until it has ended, or stop it, and start again.",
        )
